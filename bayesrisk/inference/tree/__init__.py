"""Trees of noisy counts; a path is a tree."""
