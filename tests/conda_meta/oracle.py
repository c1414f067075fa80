"""Real conda's own readers, asked in a process of their own: a request (method, arguments) a line, an answer a line.

The conda is the one that conda-lock brings. It looks for itself under the name ``conda``, which is given to it here.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import sys
import types
from collections.abc import Sequence
from typing import Any

_REAL = "conda_lock._vendor.conda"


class _Alias(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """``conda.x`` is ``conda_lock._vendor.conda.x``."""

    def find_spec(
        self, fullname: str, _path: Sequence[str] | None, _target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname.partition(".")[0] != "conda" or importlib.util.find_spec(_REAL + fullname[5:]) is None:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return importlib.import_module(_REAL + spec.name[5:])

    def exec_module(self, module: types.ModuleType) -> None:
        """Nothing: it is loaded already."""


def _prepare() -> None:
    found = importlib.util.find_spec("conda_lock")
    assert found is not None
    stub = types.ModuleType("conda_lock")  # its own __init__ loads the whole program
    stub.__path__ = list(found.submodule_search_locations or ())
    sys.modules["conda_lock"] = stub
    sys.meta_path.insert(0, _Alias())


class _Conda:
    def __init__(self) -> None:
        self._history: Any = importlib.import_module("conda.history")
        self._specs: Any = importlib.import_module("conda.models.match_spec")
        self._records: Any = importlib.import_module("conda.models.records")
        self._versions: Any = importlib.import_module("conda.models.version")

    def order(self, one: str, other: str) -> int:
        first, second = self._versions.VersionOrder(one), self._versions.VersionOrder(other)
        return -1 if first < second else 0 if first == second else 1

    def satisfies(self, version: str, constraint: str) -> bool:
        return bool(self._versions.VersionSpec(constraint).match(version))

    def name(self, spec: str) -> str:
        return str(self._specs.MatchSpec(spec).name)

    def text(self, spec: str) -> str:
        return str(self._specs.MatchSpec(spec))

    def matches(self, spec: str, package: dict[str, Any]) -> bool:
        return bool(self._specs.MatchSpec(spec).match(self._records.PackageRecord(**package)))

    def dist_string(self, package: dict[str, Any]) -> str:
        return str(self._records.PackageRecord(**package).dist_str())

    def specs(self, prefix: str) -> dict[str, str]:
        self._forget()
        return {name: str(spec) for name, spec in self._history.History(prefix).get_requested_specs_map().items()}

    def state(self, prefix: str) -> list[str]:
        self._forget()
        return sorted(self._history.History(prefix).get_state())

    @staticmethod
    def _forget() -> None:
        """conda keeps what it read of a prefix."""
        data: Any = importlib.import_module("conda.core.prefix_data")
        data.PrefixData._cache_.clear()


def main() -> None:
    """Answer until the end of the input; what conda refuses is null."""
    _prepare()
    conda = _Conda()
    for line in sys.stdin:
        method, arguments = json.loads(line)
        try:
            answer = getattr(conda, method)(*arguments)
        except Exception as error:  # noqa: BLE001  # of its own, or a mistake that the text makes it run into
            sys.stderr.write(f"{method} {arguments}: {error!r}\n")
            answer = None
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
