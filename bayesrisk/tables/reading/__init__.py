"""Published tables, read by the evidence of their numbers."""
