"""Environments that are really broken, and a judge of what repairs them."""
