"""Run a command and print its exit status and the bytes that one process of it held at the most.

``python -S held.py ARGV…``. Linux counts to a process what it held before it became another program, as a copy of the one
that started it: so what starts it is this small one.
"""

from __future__ import annotations

import os
import sys


def main(argv: list[str]) -> int:
    """Print the two numbers; what the command prints is left out."""
    nowhere = (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0), (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0)
    _, status, used = os.wait4(os.posix_spawn(argv[0], argv, os.environ, file_actions=nowhere), 0)
    print(os.waitstatus_to_exitcode(status), used.ru_maxrss * 1024)  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
