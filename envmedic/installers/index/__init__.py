"""Package indexes: configuration, credentials and HTTP."""
