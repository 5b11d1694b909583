"""Noise for every published count, its budgets, and the reading of Steed and others."""
