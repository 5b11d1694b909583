"""Commands that protect records: a release, exact tables, a plan of rules."""
