"""What a set of changed distributions brings along: owners, removals, rebuilds, dependents."""
