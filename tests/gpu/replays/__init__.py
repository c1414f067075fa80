"""Genuine faults of a real environment on a real GPU: provoked, diagnosed, repaired, undone and redone."""
