"""Checks of what computes on GPUs without torch. Each runs in a process of its own, in which nothing else is imported."""
