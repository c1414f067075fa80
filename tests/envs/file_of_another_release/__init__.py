"""A broken environment; see README.md."""
