"""Sweeps: many settings, computed in shards, resumed and reported."""
