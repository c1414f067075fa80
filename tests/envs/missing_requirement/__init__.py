"""A requirement that is not there at all."""
