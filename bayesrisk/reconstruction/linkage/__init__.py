"""Persons, the matching of records, and what guessers say without the attack."""
