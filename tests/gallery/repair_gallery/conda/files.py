"""Compares the files of a conda environment with what its records and its distributions' metadata say."""

from __future__ import annotations

import csv
import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def records(prefix: Path) -> list[dict[str, Any]]:
    """What ``conda-meta`` says of each installed package."""
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted((prefix / "conda-meta").glob("*.json"))]


def real_path(recorded: str, minor: str) -> str:
    """Where a recorded path is: conda keeps those of noarch packages as they are in the package."""
    if recorded.startswith("site-packages/"):
        return f"lib/python{minor}/{recorded}"
    return f"bin/{recorded.removeprefix('python-scripts/')}" if recorded.startswith("python-scripts/") else recorded


def owned(prefix: Path) -> dict[str, list[str]]:
    """File, relative to the prefix → names of the conda packages whose records list it."""
    minor = _minor(prefix)
    owners: dict[str, list[str]] = defaultdict(list)
    for record in records(prefix):
        listed = [item["_path"] for item in record["paths_data"]["paths"]] or record["files"]
        for path in dict.fromkeys(real_path(path, minor) for path in (*listed, *record["files"])):
            owners[path].append(record["name"])
    return owners


def scan(prefix: Path, *, altered: Iterable[str] = ()) -> list[str]:
    """What is wrong with files of conda packages: missing, other content than recorded, or of two packages."""
    minor, wrong = _minor(prefix), []
    excused = set(altered)
    for record in records(prefix):
        for item in record["paths_data"]["paths"]:
            path = real_path(item["_path"], minor)
            fault = _fault(prefix / path, item)
            if fault and path not in excused:
                wrong.append(f"{record['name']}: {path} {fault}")
    twice = {path: names for path, names in owned(prefix).items() if len(names) > 1 and path not in excused}
    return wrong + [f"{path} belongs to {names}" for path, names in twice.items()]


def _fault(file: Path, item: dict[str, Any]) -> str:
    if not file.is_symlink() and not file.exists():
        return "is missing"
    expected = item.get("sha256_in_prefix") or ("" if item.get("prefix_placeholder") else item.get("sha256", ""))
    if file.is_symlink() or item["path_type"] == "softlink":
        return "" if file.is_symlink() and item["path_type"] == "softlink" else "is a link or should be one"
    if not expected or item["path_type"] in {"pyc_file", "unix_python_entry_point"}:
        return ""
    return "" if hashlib.sha256(file.read_bytes()).hexdigest() == expected else "has other content than recorded"


def misowned(prefix: Path) -> list[str]:
    """Distributions with two metadata directories, or of two owners, and files that pip's metadata lists in vain."""
    site = prefix / "lib" / f"python{_minor(prefix)}" / "site-packages"
    owners, wrong = owned(prefix), []
    copies: dict[str, list[str]] = defaultdict(list)
    for info in sorted(site.glob("*.dist-info")):
        copies[info.name.rsplit("-", 1)[0].partition("-")[0].lower().replace("_", "-")].append(info.name)
        metadata = (info / "METADATA").relative_to(prefix).as_posix()
        if not (info / "RECORD").exists():
            wrong.append(f"{info.name} has no RECORD")
            continue
        by_pip = _installer(info) != "conda"
        if by_pip == (metadata in owners):
            wrong.append(f"{info.name} is of {_installer(info)}, and of conda packages {owners.get(metadata)}")
        for path in _recorded(info):
            if by_pip and path in owners:
                wrong.append(f"{path} of {info.name} is of conda package {owners[path]} as well")
            if by_pip and not (prefix / path).exists():
                wrong.append(f"{path} of {info.name} is missing")
    return wrong + [f"{name}: {found}" for name, found in copies.items() if len(found) > 1]


def _installer(info: Path) -> str:
    file = info / "INSTALLER"
    return file.read_text(encoding="utf-8").strip() if file.exists() else "nobody"


def _recorded(info: Path) -> list[str]:
    """Files of RECORD relative to the prefix, its bytecode apart."""
    prefix = info.parents[3]
    with (info / "RECORD").open(encoding="utf-8", newline="") as file:
        paths = [(info.parent / row[0]).resolve() for row in csv.reader(file) if row]
    inside = [path for path in paths if path.is_relative_to(prefix.resolve()) and path.suffix != ".pyc"]
    return [path.relative_to(prefix.resolve()).as_posix() for path in inside]


def _minor(prefix: Path) -> str:
    version: str = next(record["version"] for record in records(prefix) if record["name"] == "python")
    return ".".join(version.split(".")[:2])
