"""A block and the group around it, with the truth known: averages over releases, and their law."""
