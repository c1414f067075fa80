"""Environments made of files for tests of the probe, and small shared libraries made by the compiler."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

PYTHON = "3.11"
NOBODY = {"HOME": "/", "XDG_CONFIG_DIRS": "/nonexistent"}
"""Variables of a user without any configuration, on a machine without one."""


def make_prefix(root: Path, *, python: str = PYTHON, settings: str = "home = /opt/base/bin\n") -> Path:
    """A venv-like prefix whose interpreter does not exist; returns it."""
    site(root, python).mkdir(parents=True)
    (root / "bin").mkdir()
    (root / "bin" / "python").symlink_to("/nonexistent/python")
    (root / "pyvenv.cfg").write_text(f"{settings}version = {python}.4\n")
    return root


def site(prefix: Path, python: str = PYTHON) -> Path:
    return prefix / "lib" / f"python{python}" / "site-packages"


def add_distribution(
    folder: Path,
    name: str,
    version: str,
    *,
    files: dict[str, str] | None = None,
    metadata: str = "",
    extra: dict[str, str] | None = None,
) -> Path:
    """Write a dist-info as an installer would, with its files; `extra` has more files of the dist-info."""
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{metadata}\nText\n")
    contents = files or {}
    for path, content in contents.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content)
    for path, content in (extra or {}).items():
        (info / path).write_text(content)
    rows = [f"{path},sha256=x,{len(content)}" for path, content in contents.items()]
    (info / "RECORD").write_text("\n".join([*rows, f"{info.name}/RECORD,,"]) + "\n")
    return info


def compiler() -> str:
    """The C compiler of this machine; skips the test where there is none."""
    found = shutil.which("gcc") or shutil.which("cc")
    if found is None:
        pytest.skip("no C compiler to make shared libraries with")
    return found


def build_library(target: Path, source: str, *arguments: str) -> Path:
    """Compile C source into a shared library at `target`."""
    target.parent.mkdir(parents=True, exist_ok=True)
    code = target.parent / (target.name + ".c")
    code.write_text(source)
    command = [compiler(), "-shared", "-fPIC", "-o", str(target), str(code), *arguments]
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, "LC_ALL": "C"})
    code.unlink()
    return target
