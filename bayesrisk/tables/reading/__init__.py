"""Tables as agencies publish them, read by what their numbers say."""
