"""Studies of census releases: noisy measurements, places one by one, and occupancy."""
