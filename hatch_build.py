"""Build hook: the wheel holds the shipped playbooks compiled, see `envmedic.playbook.compiled`, and its tables and its manual page packed."""

from __future__ import annotations

import gzip
import importlib
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

TABLES = ("envmedic/compat/data/*.json", "envmedic/diagnosis/*.json")


class MadeFiles(BuildHookInterface):  # type: ignore[type-arg]
    """Makes them in a directory of its own, which exists until the wheel is written."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile the playbooks of the tree that is built, and pack its tables and its manual page."""
        if version == "editable":
            return
        sys.path.insert(0, self.root)
        # only the tree that is built has it
        compile_shipped = importlib.import_module("envmedic.playbook.compiled").compile_shipped

        self._folder = tempfile.TemporaryDirectory(prefix="envmedic-made-")
        made = Path(self._folder.name)
        compile_shipped(made / "compiled.xz")
        build_data["force_include"][str(made / "compiled.xz")] = "envmedic/compiled.xz"
        for table in (table for pattern in TABLES for table in Path(self.root).glob(pattern)):
            packed = self._packed(table, made)
            build_data["force_include"][str(packed)] = f"{table.parent.relative_to(self.root)}/{packed.name}"
        page = self._packed(Path(self.root, "man", "envmedic.1"), made)
        build_data["shared_data"][str(page)] = f"share/man/man1/{page.name}"

    @staticmethod
    def _packed(file: Path, folder: Path) -> Path:
        packed = folder / f"{file.name}.gz"
        packed.write_bytes(gzip.compress(file.read_bytes(), mtime=0))
        return packed

    def finalize(self, version: str, _build_data: dict[str, Any], _artifact: str) -> None:
        """Remove the directory."""
        if version != "editable":
            self._folder.cleanup()
