"""The vocabulary of playbooks: kinds of facts by area, and the names of checks."""
