"""Answers to questions on files, tables and many machines, as lines."""
