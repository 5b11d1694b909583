"""A release from the top down: measured, made consistent and rounded at each level."""
