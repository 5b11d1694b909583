"""Privacy-protected microdata files: persons and units."""
