"""References in plain Python that kernels must agree with."""
