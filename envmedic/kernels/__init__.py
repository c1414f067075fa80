"""Checks that the environment's own Python runs; see ``driver.py``. Nothing in envmedic imports this package."""
