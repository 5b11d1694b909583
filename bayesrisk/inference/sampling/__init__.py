"""Gibbs samplers, the chains they make, and ArviZ."""
