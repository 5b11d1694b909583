"""Suppression of cells, and the audit of suppressed cells."""
