"""A block and its group with the truth known: averages over releases, and their distribution."""
