"""Makes the conda that conda-lock carries in itself a conda of its own: ``python -m conda_shim list``.

This file is copied into the referee's environment and runs there; ``conda.x`` is ``conda_lock._vendor.conda.x``.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types
from collections.abc import Sequence
from pathlib import Path

_REAL = "conda_lock._vendor.conda"


class _Alias(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds modules of ``conda`` among those of conda-lock."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        del path, target
        if fullname != "conda" and not fullname.startswith("conda."):
            return None
        if importlib.util.find_spec(_REAL + fullname[5:]) is None:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return importlib.import_module(_REAL + spec.name[5:])

    def exec_module(self, module: types.ModuleType) -> None:
        """Nothing: it is loaded already."""


def setup() -> None:
    """Make ``import conda`` work, without running what ``conda_lock`` itself does at its import."""
    if "conda_lock" in sys.modules:  # done when the interpreter started, by the .pth file
        return
    found = importlib.util.find_spec("conda_lock")
    if found is None or found.submodule_search_locations is None:
        raise ImportError("conda-lock is not installed here")
    package = types.ModuleType("conda_lock")
    package.__path__ = list(found.submodule_search_locations)
    sys.modules["conda_lock"] = package
    sys.meta_path.insert(0, _Alias())


def main() -> int:
    """conda, with the arguments of this process."""
    setup()
    sys.argv[0] = "conda"
    activate = importlib.import_module(f"{_REAL}.activate")
    activate.PosixActivator.hook_source_path = Path(__file__).with_name("conda.sh")  # conda's own is not carried
    code = importlib.import_module(f"{_REAL}.cli.main").main()
    return int(code or 0)


if __name__ == "__main__":  # detecting a GPU starts a child, which imports this again
    sys.exit(main())
