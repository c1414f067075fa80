"""Tests of notebooks: what a kernel is answered, and the magics in a real one."""
