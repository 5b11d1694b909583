"""Posteriors for trees of noisy counts; a path of nested groups is a tree."""
