"""Summary tables: Census Bureau summary files, and NHGIS extracts of them."""
