"""Real environments, really broken: what `make bench-repair` repairs one after the other."""
