"""Builds the broken environment of this case from a source that is really compiled. See README.md."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.support.native_case import NativeCase, build_native
from tests.support.torch_modules import NEWER, OLDER, PROGRAM, build_tools, project, torch_wheel
from tests.support.venvs import install, python_of, uv


def build(room: Path, *, torch: str = OLDER.version) -> NativeCase:
    """box-ops compiled in an environment with torch 2.7.1, which then got `torch`. Its build directory stays."""
    folder = room / "wheels"
    torches = {release.version: torch_wheel(folder, release) for release in (OLDER, NEWER)}
    wheels = [*torches.values(), *build_tools(folder)]
    case = build_native(room, wheels, [f"torch=={NEWER.version}"], PROGRAM)
    source = project(room / "src" / "box-ops")
    install_from(case, source)
    if torch != NEWER.version:
        install(case.prefix, [torches[torch]])
    return case


def install_from(case: NativeCase, source: Path, **more: str) -> None:
    """Install from a directory, as ``pip install --no-build-isolation DIR`` does, with `more` variables."""
    options = ("--quiet", "--no-config", "--no-cache", "--no-index", "--no-deps", "--no-build-isolation")
    command = [uv(), "pip", "install", *options, "--python", str(python_of(case.prefix)), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**case.variables(), **more})
    assert done.returncode == 0, done.stderr
