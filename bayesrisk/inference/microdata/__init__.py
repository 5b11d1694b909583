"""The law of the records of a place given a release: exact, or by chains."""
