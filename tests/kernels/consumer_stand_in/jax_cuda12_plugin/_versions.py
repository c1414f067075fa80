"""What the plugin knows of the libraries that it was built with and those that it finds."""

import lists  # type: ignore[import-not-found]


def cudnn_build_version() -> int:
    return 90800


def cudnn_get_version() -> int:
    if lists.FAULT == "no cudnn":
        raise RuntimeError("cuDNN not found.")
    return 90100 if lists.FAULT == "old cudnn" else 90801
