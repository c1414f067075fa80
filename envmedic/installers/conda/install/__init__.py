"""Installing conda packages by py-rattler or by conda, with verification."""
