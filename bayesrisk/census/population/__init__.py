"""Synthetic people, households and subsidised housing: made-up confidential data.

This layer draws records from published totals and stated shapes. It reads nobody's records, and
knows nothing of the adversary or the auditor.
"""
