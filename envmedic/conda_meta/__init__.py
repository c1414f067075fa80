"""Readers of the files in `conda-meta`: records of both shapes, history, pins. They parse text and open no files."""
