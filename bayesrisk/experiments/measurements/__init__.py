"""Noisy measurement files: the risk of every cell, and the posterior of every count."""
