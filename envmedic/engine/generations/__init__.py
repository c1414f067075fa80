"""Generations of an environment: finish, undo, redo, recovery, and the differences between them."""
