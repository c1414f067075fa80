"""Checks of torch and its companions."""
