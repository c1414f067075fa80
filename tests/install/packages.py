"""The wheel and the source archive: how they are built, and what they must hold and must not."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from tests.support.venvs import uv

ROOT = Path(__file__).resolve().parents[2]
NEVER = re.compile(r"(^|/)(__pycache__|\.git|\.venv|\.demo|\.mypy_cache|\.ruff_cache|dist|build)(/|$)|\.py[co]$")
"""What belongs to one checkout."""
_SCHEMA = re.compile(r"envmedic/schemas/(?!playbook-1\.json).*")
TABLES = re.compile(r"envmedic/(compat/data|diagnosis)/\w+\.json")
"""What a wheel has packed."""
OF_THE_SOURCE = (
    "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile", "mkdocs.yml", "pyproject.toml", "hatch_build.py",
    "man/envmedic.1", "docs/tutorial.md", "envmedic/__main__.py", "tests/conftest.py",
)  # fmt: skip


def build(folder: Path, *, alone: bool = False) -> tuple[Path, ...]:
    """Build both from the checkout into `folder`, the wheel from the source archive.

    With `alone` by the build backend that is installed beside the tests, without a network.
    """
    options = ["--no-build-isolation", "--offline", "--python", sys.executable] if alone else []
    place = ["--no-create-gitignore", "--out-dir", str(folder), str(ROOT)]
    subprocess.run([uv(), "build", "--quiet", *options, *place], check=True)
    return tuple(sorted(folder.iterdir()))


def names(package: Path) -> tuple[str, ...]:
    """Every file of a wheel, or of a source archive below its one directory."""
    if package.suffix == ".whl":
        with zipfile.ZipFile(package) as wheel:
            return tuple(sorted(wheel.namelist()))
    with tarfile.open(package) as archive:
        return tuple(sorted(item.name.partition("/")[2] for item in archive.getmembers() if item.isfile()))


def complaints(package: Path) -> tuple[str, ...]:
    """What is wrong with a package."""
    found = set(names(package))
    expected = set(_of_wheel() if package.suffix == ".whl" else _of_source())
    lacking = sorted(expected - _without_data(found))
    strange = sorted(name for name in found if NEVER.search(name) or not _may_hold(package, name))
    return (*(f"it lacks {name}" for name in lacking), *(f"it holds {name}" for name in strange))


def _without_data(found: set[str]) -> set[str]:
    """Names with those of a wheel's shared data as they lie after the installation."""
    return {re.sub(r"^[^/]+\.data/data/", "", name) for name in found}


def _of_wheel() -> Iterator[str]:
    yield "share/man/man1/envmedic.1.gz"
    yield "envmedic/py.typed"
    yield from (f"envmedic/shipped_playbooks/{path.name}" for path in (ROOT / "playbooks").glob("*.yaml"))
    # schemas of documents are in the source archive alone
    for name in _files("envmedic"):
        if not _SCHEMA.fullmatch(name):
            yield f"{name}.gz" if TABLES.fullmatch(name) else name


def _of_source() -> Iterator[str]:
    yield from OF_THE_SOURCE
    for folder in ("envmedic", "playbooks", "tests"):
        yield from _files(folder)


def _files(folder: str) -> Iterator[str]:
    """Files of the checkout that git knows, of one directory."""
    done = subprocess.run(["git", "ls-files", "-z", folder], cwd=ROOT, capture_output=True, text=True, check=True)
    yield from (name for name in done.stdout.split("\0") if name and (ROOT / name).is_file())


def _may_hold(package: Path, name: str) -> bool:
    top = name.partition("/")[0]
    if package.suffix == ".whl":
        return top == "envmedic" or top.endswith((".dist-info", ".data"))
    return top in {"envmedic", "playbooks", "tests", "docs", "man", "PKG-INFO", ".gitignore"} or name in OF_THE_SOURCE
