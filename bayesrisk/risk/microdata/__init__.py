"""Microdata themselves: who is rare in them, and what a protected version repeats."""
