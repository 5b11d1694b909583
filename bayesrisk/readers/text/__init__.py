"""Parts of all readers of text: sources, columns, fixed widths, places and pieces."""
