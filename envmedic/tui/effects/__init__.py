"""Calls of `api` by the terminal UI, each in a job."""
