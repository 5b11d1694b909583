"""Files of agencies, read in pieces: microdata, published tables, noisy measurements."""
