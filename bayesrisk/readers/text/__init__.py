"""What readers of text share: sources, columns, fixed widths, places and pieces."""
