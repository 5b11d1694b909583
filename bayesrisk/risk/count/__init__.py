"""Averages over the releases of one count, at one level or several."""
