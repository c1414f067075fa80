"""A real conda: 24.7.1, which conda-lock carries in itself, in an environment of its own."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import uv

from ..room import Untried

VERSION = "24.7.1"
_PINS = ("conda-lock==4.0.3",)
_NEEDS = (
    "archspec==0.2.5", "boltons==25.0.0", "conda-package-handling==2.6.0", "conda-package-streaming==0.13.0",
    "packaging==25.0", "platformdirs==4.3.8", "pluggy==1.6.0", "pycosat==0.6.6", "requests==2.32.4",
    "ruamel.yaml==0.18.14", "tqdm==4.67.1",
)  # fmt: skip
_UNREACHABLE = ("error sending request", "dns error", "Failed to fetch", "Could not connect", "timed out")
_SHIM = Path(__file__).with_name("conda_shim.py")
_PROGRAM = '#!/bin/sh\nexec "$(dirname -- "$(readlink -f -- "$0")")/python" -m conda_shim "$@"\n'
_SHELL = (
    'conda() { case "${1-}" in activate|deactivate|reactivate) local s; s="$("$CONDA_EXE" shell.posix "$@")" || return;'
    ' eval "$s"; hash -r;; *) "$CONDA_EXE" "$@";; esac; }\n'
)


def made_of() -> list[str | Path]:
    """What decides how `install` fills a directory."""
    return [_SHIM, *_PINS, *_NEEDS, _PROGRAM, _SHELL]


def install(prefix: Path) -> None:
    """Put a conda into `prefix`."""
    run([uv.find_uv_bin(), "venv", "--quiet", "--relocatable", "--python", sys.executable, str(prefix)])
    command = [
        uv.find_uv_bin(),
        "pip",
        "install",
        "--quiet",
        "--compile-bytecode",
        "--python",
        str(prefix / "bin" / "python"),
    ]
    run([*command, "--no-deps", *_PINS])
    run([*command, *_NEEDS])
    site = next((prefix / "lib").glob("python*/site-packages"))
    shutil.copy(_SHIM, site / "conda_shim.py")
    (site / "conda.sh").write_text(_SHELL, encoding="utf-8")
    (site / "conda_shim.pth").write_text("import conda_shim; conda_shim.setup()\n", encoding="utf-8")
    program = prefix / "bin" / "conda"
    program.write_text(_PROGRAM, encoding="utf-8")
    program.chmod(0o755)


def run(command: list[str]) -> None:
    """Run an installer; where no package index can be reached, nothing can be tried."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode and any(sign in done.stderr for sign in _UNREACHABLE):
        raise Untried(f"conda {VERSION} is installed from a package index, and none can be reached")
    if done.returncode:
        raise RuntimeError(done.stderr)
