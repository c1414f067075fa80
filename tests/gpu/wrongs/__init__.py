"""Environments that compute wrongly, and which checks see it."""
