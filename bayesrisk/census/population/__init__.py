"""Synthetic people, households and subsidised housing: made-up confidential data.

Rule of this layer: it draws records from published totals and stated shapes; it reads nobody's
records, and nothing of the adversary or the auditor is known here.
"""
