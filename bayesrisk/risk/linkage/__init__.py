"""Reconstructed records against the truth: re-identification and its baselines."""
