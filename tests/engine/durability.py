"""A disk as a power cut would leave it, next to the calls that decide: syncs, renames, exchanges, journal states."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from envmedic.engine.fs import syscalls
from envmedic.tree.fingerprint import UV_LOCK

Signature = tuple[Any, ...]


@dataclass
class Disk:
    """Knows what was synced below `root`, and keeps the order of the calls.

    An inode counts as durable while it is as it was at its last sync: a file by size and time, a directory by its
    entries.
    """

    root: Path
    calls: list[str] = field(default_factory=list)
    on_exchange: Callable[[], None] = lambda: None
    _durable: dict[int, Signature] = field(default_factory=dict)

    def watch(self, patch: pytest.MonkeyPatch) -> Disk:
        """Record every sync and rename of this process from now on."""
        for module, name, record in (
            (os, "fsync", self._fsync),
            (os, "rename", self._rename),
            (syscalls, "syncfs", self._syncfs),
            (syscalls, "rename_exchange", self._exchange),
            (syscalls, "rename_noreplace", self._rename),
        ):
            patch.setattr(module, name, self._recorded(getattr(module, name), record))
        return self

    @staticmethod
    def _recorded(call: Callable[..., Any], record: Callable[..., None]) -> Callable[..., Any]:
        def recorded(*arguments: Any, **more: Any) -> Any:
            result = call(*arguments, **more)
            record(*arguments)
            return result

        return recorded

    def _fsync(self, descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        self._durable[os.fstat(descriptor).st_ino] = _signature(path)
        self.calls.append(f"fsync {self._name(path)}")

    def _syncfs(self, descriptor: int) -> None:
        self._durable |= {path.lstat().st_ino: _signature(path) for path in (self.root, *self.root.rglob("*"))}
        self.calls.append(f"syncfs {self._name(Path(f'/proc/self/fd/{descriptor}').readlink())}")

    def _rename(self, source: str | Path, target: str | Path) -> None:
        state = f" {json.loads(Path(target).read_bytes())['state']}" if Path(target).name == "journal.json" else ""
        self.calls.append(f"rename {self._name(Path(source))} {self._name(Path(target))}{state}")

    def _exchange(self, first: Path, second: Path) -> None:
        if ".probe-" not in str(first):
            self.calls.append(f"exchange {self._name(first)} {self._name(second)}")
            self.on_exchange()

    def _name(self, path: Path) -> str:
        """Relative to the root, without the id of the transaction and the marks of temporary files."""
        parts = path.relative_to(self.root).parts if path.is_relative_to(self.root) else path.parts
        return "/".join("TX" if part[:1].isdigit() or part.startswith(".new-") else part for part in parts) or "."

    def unsynced(self, *paths: Path) -> list[str]:
        """What a power cut may take away of these paths and all below them, uv's lock file apart."""
        found = (below for path in paths for below in (path, *(path.rglob("*") if path.is_dir() else ())))
        return sorted(
            self._name(path)
            for path in found
            if path.name != UV_LOCK and self._durable.get(path.lstat().st_ino) != _signature(path)
        )

    def between(self, first: str, last: str) -> list[str]:
        """The calls after the one and before the other, which must be there; those that make uv's lock file apart."""
        calls = self.calls[self.calls.index(first) + 1 : self.calls.index(last)]
        return [call for call in calls if "uv-lock" not in call]


def _signature(path: Path) -> Signature:
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode):
        return status.st_size, status.st_mtime_ns, status.st_mode
    return status.st_mode, frozenset(
        (item.name, item.inode()) for item in os.scandir(path) if item.name not in {"events.jsonl", UV_LOCK}
    )
