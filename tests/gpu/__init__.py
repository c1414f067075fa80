"""What needs an NVIDIA GPU: run by people who have one, with ``python -m tests.gpu.NAME``."""
