"""Which releases of the torch family fit each other, CUDA, the driver, the GPUs and Python. Pure, over data files."""
