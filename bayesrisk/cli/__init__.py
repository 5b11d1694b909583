"""The command line: one file for each command, shared parts, and ``app``, which holds them."""
