"""Commands of package managers, parsed and judged against an environment."""
