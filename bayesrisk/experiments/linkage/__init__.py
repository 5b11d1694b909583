"""The report of re-identification."""
