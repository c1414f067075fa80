"""Conda packages: solved by py-rattler, installed by py-rattler or by the user's own conda."""
