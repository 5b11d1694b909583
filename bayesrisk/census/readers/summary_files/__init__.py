"""Summary tables: Summary File 1 as the Bureau publishes it, and as NHGIS does."""
