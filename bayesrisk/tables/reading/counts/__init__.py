"""Meanings of counts: their laws, their marks, notes on them, and evidence for them."""
