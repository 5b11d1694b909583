"""TopDown-like releases: measured, made consistent and rounded level by level."""
