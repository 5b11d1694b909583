"""The posterior distribution of a place's records given a release: exact, or by Markov chains."""
