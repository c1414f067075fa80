"""Locks of environments, and environments from locks."""
