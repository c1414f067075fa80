"""One look at every file of an environment by `stat`, as little as Python can do: what other times are held against.

Run as a program of its own (``python -S scan.py PREFIX``) it loads nothing else.
"""

from __future__ import annotations

import os
import sys


def scan(prefix: str) -> None:
    """Ask for the status of everything in `prefix`, links not followed."""
    pending = [prefix]
    while pending:
        with os.scandir(pending.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
                entry.stat(follow_symlinks=False)


if __name__ == "__main__":
    scan(sys.argv[1])
