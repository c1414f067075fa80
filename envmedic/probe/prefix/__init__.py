"""The environment itself: interpreter, search paths, processes, and where environments are found."""
