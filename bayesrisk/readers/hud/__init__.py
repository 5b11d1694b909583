"""Picture of Subsidized Households, as HUD publishes it."""
