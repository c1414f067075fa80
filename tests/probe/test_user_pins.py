"""What the user states about versions, as it is read with file and line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from envmedic.probe.packages import user_pins
from tests.probe.prefixes import NOBODY

LIMIT = "torchvision==0.19.1"
PYPROJECT = '[project]\nname = "shop"\nversion = "1"\n'

Stated = Callable[[Path, str], tuple[Mapping[str, str], str]]
"""Writes a limit beside the environment: variables of the shell, and where it stands."""


def _written(path: Path, text: str, line: int) -> tuple[Mapping[str, str], str]:
    path.write_text(text, encoding="utf-8")
    return {}, f"{path}:{line}"


def requirements(folder: Path, limit: str) -> tuple[Mapping[str, str], str]:
    return _written(folder / "requirements.txt", f"# what the shop needs\nnumpy\n{limit}  # as in production\n", 3)


def included(folder: Path, limit: str) -> tuple[Mapping[str, str], str]:
    (folder / "requirements.txt").write_text("-r more/gpu.txt\n", encoding="utf-8")
    (folder / "more").mkdir()
    return _written(folder / "more" / "gpu.txt", f"{limit} \\\n    --hash=sha256:00\n", 1)


def variant(folder: Path, limit: str) -> tuple[Mapping[str, str], str]:
    return _written(folder / "requirements-gpu.txt", f"{limit}\n", 1)


def project(folder: Path, limit: str) -> tuple[Mapping[str, str], str]:
    return _written(folder / "pyproject.toml", f'{PYPROJECT}dependencies = [\n    "{limit}",\n]\n', 5)


def constrained(folder: Path, limit: str) -> tuple[Mapping[str, str], str]:
    text = f'{PYPROJECT}[tool.uv]\nconstraint-dependencies = ["{limit}"]\n'
    return _written(folder / "pyproject.toml", text, 5)


def overridden(folder: Path, limit: str) -> tuple[Mapping[str, str], str]:
    return _written(folder / "uv.toml", f'override-dependencies = ["{limit}"]\n', 1)


def locked(folder: Path, limit: str) -> tuple[Mapping[str, str], str]:
    name, _, version = limit.partition("==")
    text = (
        f'version = 1\n\n[[package]]\nname = "{name}"\nversion = "{version}"\nsource = {{ registry = "https://x" }}\n'
    )
    return _written(folder / "uv.lock", text, 4)


def variable(folder: Path, limit: str) -> tuple[Mapping[str, str], str]:
    _, where = _written(folder / "held.txt", f"{limit}\n", 1)
    return {"PIP_CONSTRAINT": str(folder / "held.txt")}, where


def configured(folder: Path, limit: str) -> tuple[Mapping[str, str], str]:
    _, where = _written(folder / "held.txt", f"{limit}\n", 1)
    (folder / "pip.conf").write_text(f"[install]\nconstraint = {folder / 'held.txt'}\n", encoding="utf-8")
    return {"PIP_CONFIG_FILE": str(folder / "pip.conf")}, where


ALL: tuple[Stated, ...] = (
    requirements, included, variant, project, constrained, overridden, locked, variable, configured,
)  # fmt: skip


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    """What is looked at of a virtual environment."""
    made = tmp_path / "shop" / ".venv"
    made.mkdir(parents=True)
    (made / "pyvenv.cfg").write_text("home = /usr/bin\n", encoding="utf-8")
    return made


@pytest.mark.parametrize("stated", ALL, ids=lambda item: item.__name__)
def test_a_limit_is_read_with_its_place(prefix: Path, stated: Stated) -> None:
    variables, where = stated(prefix.parent, LIMIT)
    found = user_pins.observe(prefix, {"HOME": str(prefix.parent), **variables})
    assert [item.source.partition(" ")[0] for item in found if item.requirement == LIMIT] == [where]


def test_an_override_replaces_the_requirement(prefix: Path) -> None:
    text = f'{PYPROJECT}dependencies = ["torch==2.4"]\n[tool.uv]\noverride-dependencies = ["torch>=2.5"]\n'
    (prefix.parent / "pyproject.toml").write_text(text, encoding="utf-8")
    assert [item.requirement for item in user_pins.observe(prefix, NOBODY)] == ["torch>=2.5"]


@pytest.mark.parametrize(
    "text", ["= [", "[project]\ndependencies = 3", "[[package]]\nname = 3", "\0", "-r requirements.txt"]
)
def test_files_that_say_nothing(prefix: Path, text: str) -> None:
    for name in ("pyproject.toml", "uv.toml", "uv.lock", "requirements.txt"):
        (prefix.parent / name).write_text(text, encoding="utf-8")
    assert user_pins.observe(prefix, NOBODY) == ()
