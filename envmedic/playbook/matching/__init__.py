"""Signatures of playbooks in the lines of a log."""
