"""Proofs that claims hold in every data set that agrees with the tables."""
