"""The commands of package managers, read and judged against an environment."""
