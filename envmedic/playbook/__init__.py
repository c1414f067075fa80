"""Playbooks: reading and validating them, and matching their signatures in logs."""
