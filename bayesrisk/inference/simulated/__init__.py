"""Posteriors for releases that can only be simulated."""
