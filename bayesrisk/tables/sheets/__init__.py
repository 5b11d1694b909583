"""Sheets: the tables of files, workbooks and frames, with their headings and cell texts."""
