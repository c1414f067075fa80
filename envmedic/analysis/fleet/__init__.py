"""Environments of many machines: what of them is the same, classes, drift, and how a plan ended. Pure."""
