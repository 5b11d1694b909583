"""Sheets: the tables of files, workbooks and frames, with their headings; words in their cells."""
