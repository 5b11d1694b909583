"""Variables of published tables: their labels, and the sums and trees that these make."""
