"""Conclusions on distributions: who needs whom, what is doubled, what is not met. Pure."""
