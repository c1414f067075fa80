"""Makes real virtual environments for tests, with real uv, without touching any index."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.support.wheels import Wheel


def uv() -> str:
    """The uv that the project depends on."""
    from uv import find_uv_bin

    return find_uv_bin()


def make_venv(prefix: Path, *, python: str = sys.executable) -> Path:
    """Create a venv without pip at `prefix` and return the prefix."""
    run([uv(), "venv", "--quiet", "--no-config", "--python", python, str(prefix)])
    return prefix


def install(prefix: Path, wheels: Sequence[Wheel], *, index: str | None = None) -> None:
    """Install exactly `wheels`, without dependencies, as from an index (no direct_url.json)."""
    links = dict.fromkeys(str(wheel.path.parent) for wheel in wheels)
    source = ["--default-index", index] if index else ["--no-index", *(f"--find-links={link}" for link in links)]
    pins = [wheel.requirement for wheel in wheels]
    run(
        [uv(), "pip", "install", "--quiet", "--no-config", "--no-deps", "--link-mode=copy", "--no-cache"]
        + [*source, "--python", str(python_of(prefix)), *pins]
    )


def install_editable(prefix: Path, project: Path) -> None:
    """Install `project`, which must build without downloads, in editable mode."""
    run(
        [uv(), "pip", "install", "--quiet", "--no-config", "--no-deps", "--offline", "--link-mode=copy", "--no-cache"]
        + ["--python", str(python_of(prefix)), "--editable", str(project)]
    )


def python_of(prefix: Path) -> Path:
    """The interpreter of an environment."""
    return prefix / "bin" / "python"


def site_packages(prefix: Path) -> Path:
    """The purelib directory of an environment."""
    return next((prefix / "lib").glob("python3.*/site-packages"))


def run(argv: Sequence[str], *, env: dict[str, str] | None = None) -> str:
    """Run a command that must succeed and return its output; the failure shows all of it."""
    result = subprocess.run(argv, capture_output=True, text=True, check=False, env=env)
    output = result.stdout + result.stderr
    assert result.returncode == 0, f"{' '.join(argv)}\n{output}"
    return output
