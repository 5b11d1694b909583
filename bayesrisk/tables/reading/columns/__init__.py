"""Roles of the columns of a sheet: labels, counts, or neither."""
