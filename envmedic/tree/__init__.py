"""Trees of files: one walk over an environment, and fingerprints that show whether anything changed."""
