"""One file for each command, or for two that belong together."""
