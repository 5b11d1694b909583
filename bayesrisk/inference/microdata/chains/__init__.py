"""Chains on the records of a place, and how they are run until they agree."""
