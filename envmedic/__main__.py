"""The ``envmedic`` script, and ``python -m envmedic``."""

from __future__ import annotations

import gc
import sys

_COLLECT_AFTER = 100_000
"""Containers. One command makes some ten thousand that live to its end; looking through them again and again for
garbage is a tenth of a diagnosis."""


def program() -> int:
    """Run one command in a process that is its own, and return its exit code."""
    gc.set_threshold(_COLLECT_AFTER)
    from envmedic.cli.main import main  # noqa: PLC0415  # it makes the first of them

    code = main()
    gc.freeze()  # the process ends: nothing is looked through once more
    return code


if __name__ == "__main__":
    sys.exit(program())
