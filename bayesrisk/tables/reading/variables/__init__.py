"""Variables of published tables: their labels, with sums and trees of these."""
