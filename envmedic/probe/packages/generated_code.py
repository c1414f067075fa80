"""Modules that protobuf's compiler generated, and the runtimes that they accept, by the text of their files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from envmedic.model.facts import Distribution, GeneratedModule
from envmedic.probe.readable import read_bytes

_LARGEST = 8 * 1024 * 1024
_OLD = re.compile(rb"\b_descriptor\.(?:FieldDescriptor|FileDescriptor|EnumValueDescriptor)\(")
"""Code of compilers before 3.19, which makes descriptors itself; runtimes from 4 on refuse that."""
_STATED = re.compile(rb"ValidateProtobufRuntimeVersion\(\s*[\w.]+,\s*(\d+),\s*(\d+),\s*(\d+)")
"""Code of compilers from 5.26 on, which states its own release."""
_BUILDER = re.compile(rb"^from google\.protobuf\.internal import builder\b", re.MULTILINE)
"""Code of compilers from 3.20 on."""


def generated_modules(
    sites: Sequence[Path], root: Path, distributions: Sequence[Distribution]
) -> tuple[GeneratedModule, ...]:
    """Return the generated modules below `sites` that state which runtimes they accept, with paths relative to `root`."""
    owners = {name.partition(".")[0]: item.name for item in reversed(distributions) for name in item.import_names}
    return tuple(
        GeneratedModule(path=str(path.relative_to(root)), distribution=owners.get(_top(path, site)), accepts=accepts)
        for site in sites
        for path in _files(site)
        if (accepts := accepted(read_bytes(path, _LARGEST) or b"")) is not None
    )


def accepted(text: bytes) -> str | None:
    """Return the versions of protobuf that a generated module works with; None where its text tells none."""
    stated = _STATED.search(text)
    if stated is not None:
        major, minor, patch = (int(number) for number in stated.groups())
        # the runtime refuses code of a newer release, and of a major release more than one behind it
        return f">={major}.{minor}.{patch},<{major + 2}"
    if _OLD.search(text) is not None:
        return "<4"
    return ">=3.20" if _BUILDER.search(text) is not None else None


def _files(site: Path) -> Iterator[Path]:
    for directory, folders, files in os.walk(site):
        folders.sort()
        own = (name for name in sorted(files) if name.endswith("_pb2.py"))
        # a package that has the same messages from another compiler beside it imports the ones that fit
        yield from (Path(directory) / name for name in own if not _other_code(name, files))


def _other_code(name: str, files: Sequence[str]) -> bool:
    stem = name.removesuffix(".py") + "_"
    return any(other.startswith(stem) and not other.endswith("_grpc.py") for other in files)


def _top(path: Path, site: Path) -> str:
    return path.relative_to(site).parts[0].removesuffix(".py")
