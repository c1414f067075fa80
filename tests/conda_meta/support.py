"""Environments of records and history alone."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

FORGE = "https://conda.anaconda.org/conda-forge"


def record(name: str, version: str = "1.0", build: str = "0", **more: object) -> dict[str, Any]:
    """A record as conda writes it."""
    filename = f"{name}-{version}-{build}.conda"
    return {
        "name": name, "version": version, "build": build, "build_number": 0, "subdir": "linux-64", "fn": filename,
        "channel": f"{FORGE}/linux-64", "url": f"{FORGE}/linux-64/{filename}", "md5": "0" * 32, "depends": [],
        "constrains": [], "files": [], "requested_spec": "None", "paths_data": {"paths_version": 1, "paths": []},
    } | more  # fmt: skip


def paths(*entries: str | Mapping[str, object]) -> dict[str, Any]:
    """The part of a record that lists its files."""
    listed = [{"_path": item, "path_type": "hardlink"} if isinstance(item, str) else dict(item) for item in entries]
    return {"paths_version": 1, "paths": listed}


def write(prefix: Path, records: Iterable[Mapping[str, Any]], history: str | None = "") -> Path:
    """An environment with these records and this history, None for none."""
    folder = prefix / "conda-meta"
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.json"):
        old.unlink()
    for item in records:
        stem = f"{item['name']}-{item['version']}-{item['build']}"
        (folder / f"{stem}.json").write_text(json.dumps(item))
    if history is not None:
        (folder / "history").write_text(history)
    return prefix
