"""Requests to py-rattler's solver, and its answers."""
