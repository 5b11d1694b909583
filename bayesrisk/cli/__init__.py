"""The command line: one file for each command, what they share, and ``app``, which holds them."""
