"""Closed sets of names, one row each: faults, checks, remedies, installers, modes."""
