"""A block and its group with the truth known: averages and distributions over releases."""
