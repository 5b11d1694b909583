"""The plan of a release: the most detailed rules under which tables keep limits, with the proof."""
