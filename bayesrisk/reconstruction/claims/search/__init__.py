"""Proofs that a claim holds in every data set that agrees with the tables."""
