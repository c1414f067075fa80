"""Wheels: fetching, caching and reading them."""
