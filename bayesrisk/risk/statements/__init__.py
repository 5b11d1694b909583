"""Statements of attacks about people, each with its prior, its posterior and the truth."""
