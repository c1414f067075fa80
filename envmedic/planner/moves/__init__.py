"""Sets of distributions whose move ends a conflict of requirements: found, resolved through a port, and compared."""
