"""Suppression of cells, and the audit of what is still known about them."""
