"""Consequences of changed distributions: owners, removals, rebuilds and dependents."""
