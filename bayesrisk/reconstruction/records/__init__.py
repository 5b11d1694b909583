"""Records that agree with the tables, and how far other such records can differ."""
