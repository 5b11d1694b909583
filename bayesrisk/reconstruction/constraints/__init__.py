"""What tables say about the records of a place, as linear equations."""
