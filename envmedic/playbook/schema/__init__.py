"""Playbook files: reading, validation, templates and conditions."""
