"""What the tables give away about households above their occupancy limit."""
