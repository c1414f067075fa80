"""Makes real virtual environments for tests, with real uv, without touching any index."""

from __future__ import annotations

import os
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
    run([*_install(prefix), "--no-deps", *source, *pins])


def install_file(prefix: Path, wheel: Path) -> None:
    """Install the wheel at that path, without dependencies."""
    run([*_install(prefix), "--no-deps", "--offline", str(wheel)])


def install_editable(prefix: Path, project: Path) -> None:
    """Install `project`, which must build without downloads (see `editable_project`), in editable mode."""
    run([*_install(prefix), "--no-deps", "--offline", "--editable", str(project)])


def editable_project(directory: Path, name: str, version: str = "0.1") -> Path:
    """Write a project with one module and a build backend of its own, and return its directory."""
    directory.mkdir(parents=True)
    module = name.replace("-", "_")
    (directory / f"{module}.py").write_text(f"version = {version!r}\n", encoding="utf-8")
    (directory / "pyproject.toml").write_text(
        f'[project]\nname = "{name}"\nversion = "{version}"\n\n'
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
        encoding="utf-8",
    )
    (directory / "backend.py").write_text(_BACKEND.format(name=name, module=module, version=version), encoding="utf-8")
    return directory


def _install(prefix: Path) -> list[str]:
    quiet = ["--quiet", "--no-config", "--link-mode=copy", "--no-cache"]
    return [uv(), "pip", "install", *quiet, "--python", str(python_of(prefix))]


_BACKEND = '''\
"""Builds the editable wheel: a .pth file that names this directory."""

import os
import zipfile

INFO = "{module}-{version}.dist-info"


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    files = {{
        "__editable__.{module}.pth": os.getcwd() + "\\n",
        INFO + "/METADATA": "Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n",
        INFO + "/WHEEL": "Wheel-Version: 1.0\\nGenerator: backend\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
    }}
    files[INFO + "/RECORD"] = "".join(path + ",,\\n" for path in [*files, INFO + "/RECORD"])
    name = "{module}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(wheel_directory, name), "w") as archive:
        for path, content in files.items():
            archive.writestr(path, content)
    return name
'''


def python_of(prefix: Path) -> Path:
    """The interpreter of an environment."""
    return prefix / "bin" / "python"


def site_packages(prefix: Path) -> Path:
    """The purelib directory of an environment."""
    return next((prefix / "lib").glob("python3.*/site-packages"))


def run(argv: Sequence[str]) -> str:
    """Run a command that must succeed, without the machine's pip and uv settings, and return its output."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_"))}
    result = subprocess.run(argv, capture_output=True, text=True, check=False, env=env)
    output = result.stdout + result.stderr
    assert result.returncode == 0, f"{' '.join(argv)}\n{output}"
    return output
