"""Tests of the engine's lower half: trees, clones, exchange, staging, preflight."""
