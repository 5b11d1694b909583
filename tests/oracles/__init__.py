"""Slow, obvious twins; each shares no algorithm with the package."""
