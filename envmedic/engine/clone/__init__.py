"""Cloning the tree of an environment."""
