"""The Bureau's noisy measurement files."""
