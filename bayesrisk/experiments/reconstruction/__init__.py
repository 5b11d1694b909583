"""Reconstruction of every place of published tables, in shards."""
