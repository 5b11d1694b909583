"""Synthetic people, households and subsidised housing: the custodian's data, made up.

Rule of this layer: it draws records from published totals and stated shapes; it reads nobody's
records, and nothing of the adversary or the auditor is known here.
"""
