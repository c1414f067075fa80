"""Environments of conda, from a channel of packages that are made here."""
