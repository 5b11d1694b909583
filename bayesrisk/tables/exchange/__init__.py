"""The folder in which published tables are exchanged: written whole, read without guessing."""
