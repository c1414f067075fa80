"""Entry point of the checks, run by the environment's own Python once per verification.

By hand: ``python -B envmedic/kernels/driver.py --human --checks matmul,conv,torchvision-nms,import:torchvision``.
Plain standard library and torch, Python 3.7 and later; the rest of envmedic is not importable here.
"""

from __future__ import annotations

import os
import sys
import types
from importlib.machinery import SOURCE_SUFFIXES, FileFinder, SourceFileLoader

PACKAGE = "envmedic_kernels"
THREADS = "2"
"""Threads of OpenMP in each process, where the shell sets none. References are small, and several processes compute at a
time: with one thread for each core they mostly wait for each other (ten times the CPU time on 16 cores)."""


class FromSource(SourceFileLoader):
    """Takes the source where the byte code beside it is damaged, which is no fault of the environment."""

    def get_code(self, fullname):
        """The code of a module."""
        try:
            return super().get_code(fullname)
        except (EOFError, ValueError, TypeError, ImportError):
            return self.source_to_code(self.get_data(self.path), self.path)


def package():
    """Make the neighbouring files a package, and remove this directory from the path.

    On the path, their names could shadow modules of the environment under test.
    """
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != here or not entry]
    # built by hand: an __init__ on the path would need its parent, envmedic, which this Python may be too old for
    module = types.ModuleType(PACKAGE)
    module.__path__ = [here]
    sys.modules[PACKAGE] = module
    find = FileFinder.path_hook((FromSource, SOURCE_SUFFIXES))

    def ours(path):
        if not (path + os.sep).startswith(here + os.sep):
            raise ImportError(path)
        return find(path)

    sys.path_hooks.insert(0, ours)
    sys.path_importer_cache.pop(here, None)


if __name__ == "__main__":
    package()
    os.environ.setdefault("OMP_NUM_THREADS", THREADS)
    from envmedic_kernels import session

    sys.exit(session.main(sys.argv[1:]))
