"""One noisy count: posterior, ratio, decision, and what post-processing changes."""
