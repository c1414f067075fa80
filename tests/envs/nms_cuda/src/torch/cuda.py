"""This miniature describes a CUDA build and runs on the CPU."""


def is_available():
    """Never."""
    return False


def device_count():
    """None."""
    return 0


def init():
    """Say why there is no GPU."""
    raise RuntimeError("this is a miniature of torch: it runs on the CPU only")
