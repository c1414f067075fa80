"""Installed distributions: metadata, records, leftovers, and packages that shadow others."""
