"""Membership: how well the best test tells a release with the target from one without."""
