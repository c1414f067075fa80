"""Build hook: the wheel holds the shipped playbooks compiled, see `envmedic.playbook.compiled`."""

from __future__ import annotations

import importlib
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompiledPlaybooks(BuildHookInterface):  # type: ignore[type-arg]
    """Compiles them into a directory of its own, which exists until the wheel is written."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile the playbooks of the tree that is built; an editable installation compiles none, they change."""
        if version == "editable":
            return
        sys.path.insert(0, self.root)
        # only the tree that is built has it
        compile_shipped = importlib.import_module("envmedic.playbook.compiled").compile_shipped

        self._folder = tempfile.TemporaryDirectory(prefix="envmedic-compiled-")
        compile_shipped(Path(self._folder.name))
        build_data["force_include"][self._folder.name] = "envmedic/compiled"

    def finalize(self, version: str, _build_data: dict[str, Any], _artifact: str) -> None:
        """Remove the directory."""
        if version != "editable":
            self._folder.cleanup()
