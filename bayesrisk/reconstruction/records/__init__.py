"""Records that agree with the tables, and how far others can be."""
