"""Compatibility of torch releases with each other, CUDA, drivers, GPUs and Python. Pure functions over data files."""
