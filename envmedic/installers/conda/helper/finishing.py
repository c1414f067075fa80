"""Completion of a change, the same after py-rattler and conda: byte code in records, requested specs, history."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from envmedic.conda_meta import history
from envmedic.conda_meta import records as meta
from envmedic.installers.conda.helper.writing import replace, replace_json

_OF_EXTRACTION = ("extracted_package_dir", "package_tarball_full_path")
"""Record keys for the directory of the unpacked package, which is removed afterwards."""
_LINKED_BY_COPY = 3
"""conda's LinkType.copy."""


def finish(request: dict[str, Any]) -> dict[str, Any]:
    """Complete the records of installed packages, write the history, and remove the working directory."""
    prefix = Path(request["prefix"])
    site = meta.read(prefix).site_packages
    compiled = 0
    for item in request["packages"]:
        compiled += _complete(prefix, prefix / item["record"], item["requested"], site)
    if request["history"] is not None:
        replace(prefix / history.PATH, request["history"].encode())
    shutil.rmtree(request["work"])
    return {"compiled": compiled}


def _complete(prefix: Path, path: Path, requested: list[str], site: str) -> int:
    """List the byte code of a noarch package in its record, as conda does, so that a removal includes it."""
    document = json.loads(path.read_bytes())
    record = meta.decode(path.read_bytes())
    fresh = sorted(_byte_code(prefix, record, site)) if record.of_python else []
    listed = {entry["_path"] for entry in document["paths_data"]["paths"]}
    new = [one for one in fresh if one not in listed]
    document["paths_data"]["paths"] += [{"_path": one, "path_type": "pyc_file"} for one in new]
    document["files"] = [*document["files"], *(one for one in new if one not in set(document["files"]))]
    for key in _OF_EXTRACTION:
        document.pop(key, None)
    # `source` would name the working directory, which is removed.
    document["link"] = {"source": "", "type": (document.get("link") or {}).get("type") or _LINKED_BY_COPY}
    document["requested_specs"] = requested
    document["requested_spec"] = requested[0] if requested else "None"
    replace_json(path, document)
    return len(fresh)


def _byte_code(prefix: Path, record: meta.PrefixRecord, site: str) -> Iterator[str]:
    """Existing byte code of the package's modules."""
    folders: dict[str, set[str]] = {}
    for path, entry in record.files(site):
        if path.endswith(".py") and entry.path_type != "pyc_file" and path.startswith(f"{site}/"):
            folder, _, name = path.rpartition("/")
            folders.setdefault(folder, set()).add(name[:-3])
    for folder, stems in folders.items():
        cache = prefix / folder / "__pycache__"
        # cpython-311.pyc, opt-1 and others: all that Python may load for a module.
        names = [path.name for path in cache.iterdir()] if cache.is_dir() else []
        yield from (f"{folder}/__pycache__/{name}" for name in names if name.partition(".")[0] in stems)
