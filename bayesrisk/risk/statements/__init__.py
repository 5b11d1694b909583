"""Statements of attacks about people, each with a prior, a posterior and the truth."""
