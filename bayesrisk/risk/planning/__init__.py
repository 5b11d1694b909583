"""Planning of a release: the most detailed rules under which tables keep given limits."""
