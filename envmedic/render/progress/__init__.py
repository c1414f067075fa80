"""A repair as it goes and as it ended: its state, made from events, and the lines that show it."""
