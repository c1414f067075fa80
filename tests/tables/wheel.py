"""The wheel `envmedic-data`: the tables that a data file may bring, as one file."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path

import msgspec
from hatchling.builders.wheel import WheelBuilder

from envmedic.compat import data_files, tables

_PROJECT = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "{name}"
version = "{version}"
description = "Compatibility tables of envmedic, renewed between its releases: data, no code"
license = "Apache-2.0"
requires-python = ">=3.10"

[tool.hatch.build.targets.wheel]
packages = ["{package}"]
"""


def document(made: Mapping[str, str], number: int | None = None) -> bytes:
    """Return the data file of tables by the names of their files; `number` tells those of one day apart."""
    parts = {name: json.loads(made[f"{name}.json"]) for name in tables.RENEWABLE}
    day = max(part["meta"]["generated"] for part in parts.values())
    version = data_files.version_of(day) + (f".{number}" if number else "")
    return msgspec.json.encode({"schema": data_files.SCHEMA, "version": version, "tables": parts})


def build(content: bytes, directory: Path) -> Path:
    """Build the wheel of a data file into a directory, and return it. Raises `NotUsable` for content that is none."""
    version = data_files.parse(content, tables.RENEWABLE).version
    package, _, file = data_files.MEMBER.partition("/")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / package).mkdir()
        (root / package / file).write_bytes(content)
        project = _PROJECT.format(name=data_files.DISTRIBUTION, version=version, package=package)
        (root / "pyproject.toml").write_text(project, encoding="utf-8")
        (made,) = WheelBuilder(folder).build(directory=str(directory.absolute()))
    return Path(made)
