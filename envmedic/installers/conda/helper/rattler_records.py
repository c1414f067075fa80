"""Conversion of packages between JSON and the types of py-rattler.

The only complete form that py-rattler reads and writes is the record of an installed package, as a file.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rattler.prefix.prefix_record import PrefixRecord
    from rattler.repo_data.record import RepoDataRecord

_OF_INSTALLED = ("files", "paths_data", "requested_specs", "requested_spec", "link", "extracted_package_dir",
                 "package_tarball_full_path")  # fmt: skip


def load_records(documents: Iterable[dict[str, Any]]) -> list[PrefixRecord]:
    """Records as values of py-rattler. Raises its errors for an unreadable record."""
    from rattler.prefix.prefix_record import PrefixRecord

    found = []
    with tempfile.TemporaryDirectory(prefix="envmedic-") as room:
        path = Path(room) / "record.json"
        for document in documents:
            # A record has both keys, and metadata of a channel neither.
            full = {"files": [], "paths_data": {"paths_version": 1, "paths": []}, **document}
            path.write_text(json.dumps(full), encoding="utf-8")
            found.append(PrefixRecord.from_path(path))
    return found


def describe_records(records: Iterable[RepoDataRecord]) -> list[dict[str, Any]]:
    """Channel metadata of packages as JSON, with ``fn``, ``url`` and ``channel``."""
    from rattler.prefix.prefix_paths import PrefixPaths
    from rattler.prefix.prefix_record import PrefixRecord

    found = []
    with tempfile.TemporaryDirectory(prefix="envmedic-") as room:
        path = Path(room) / "record.json"
        for record in records:
            PrefixRecord(record, PrefixPaths()).write_to_path(path, pretty=False)
            document = json.loads(path.read_bytes())
            found.append({key: value for key, value in document.items() if key not in _OF_INSTALLED})
    return found
