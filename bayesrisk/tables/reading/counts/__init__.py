"""Meanings of counts: their laws, their marks, notes on them, and what testifies to them."""
