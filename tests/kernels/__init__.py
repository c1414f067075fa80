"""Tests of the scripts that the environment's own Python runs."""
