"""A block and the group that it belongs to: two noisy counts and their posterior."""
