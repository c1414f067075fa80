"""Conda packages: chosen by py-rattler's solver, and put in place by py-rattler or by the user's own conda."""
