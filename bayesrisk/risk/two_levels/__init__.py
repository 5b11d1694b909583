"""Averages over the releases of two levels, and what the second level adds."""
