"""Readers of agency files, in pieces: microdata, published tables, noisy measurements."""
