"""Commands about released counts and their noise: one count, a hierarchy, a whole release."""
