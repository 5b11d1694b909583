"""Every attack under every protection on one scale: prior, without the record, and posterior."""
