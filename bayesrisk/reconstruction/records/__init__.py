"""Records that agree with the tables, and the largest difference from other such records."""
