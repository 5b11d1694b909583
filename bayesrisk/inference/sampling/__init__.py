"""Gibbs samplers, their Markov chains, and export to ArviZ."""
