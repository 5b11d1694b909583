"""Swapping of records between places."""
