"""Households above the occupancy limit of subsidised housing, from census and HUD statistics."""
