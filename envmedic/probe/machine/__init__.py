"""The machine: driver, GPUs, CUDA toolkits and compilers."""
