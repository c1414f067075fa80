"""Tests of what coding agents use."""
