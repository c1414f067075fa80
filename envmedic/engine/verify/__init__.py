"""Running checks, and the verdict on their outcomes."""
