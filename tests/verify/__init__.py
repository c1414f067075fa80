"""Tests of how checks are started and judged."""
