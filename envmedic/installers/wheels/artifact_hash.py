"""Whether a wheel is the one that was installed, told by the hashes of its files.

RECORD in a wheel lists each file with its hash, and so does RECORD of what was installed from it (PyPA specification
"Recording installed projects"). Where every hash agrees, no other content was installed.
"""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from envmedic.installers.wheels import wheel_files
from envmedic.model.facts import Distribution, Environment

Hashes = Mapping[str, str]
"""Hash of each file, by its path relative to site-packages."""


def installed(item: Distribution, environment: Environment) -> Hashes:
    """What RECORD of an installed distribution says; empty where it has none that can be read."""
    path = Path(environment.real_prefix) / item.metadata_path / "RECORD"
    try:
        return _hashes(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, csv.Error):
        return {}  # nothing is proven by it


def of_wheel(file: IO[bytes]) -> Hashes:
    """What RECORD in an open wheel says; empty where it has none. Raises `zipfile.BadZipFile` for no sound zip."""
    with wheel_files.unpacking(), zipfile.ZipFile(file) as archive:
        members = [name for name in archive.namelist() if name.endswith(".dist-info/RECORD") and name.count("/") == 1]
        if len(members) != 1:
            return {}
        try:
            return _hashes(wheel_files.member(archive, members[0]).decode("utf-8", "replace"))
        except (ValueError, csv.Error):
            return {}  # nothing is proven by it


def same(wheel: Hashes, here: Hashes) -> bool:
    """Whether each file of the wheel is there with its hash.

    Files of ``.data`` directories are moved, and scripts among them rewritten: they say nothing.
    """
    compared = {path: digest for path, digest in wheel.items() if ".data/" not in path}
    return bool(compared) and all(here.get(path) == digest for path, digest in compared.items())


def _hashes(record: str) -> dict[str, str]:
    rows = csv.reader(io.StringIO(record))
    return {row[0]: row[1] for row in rows if len(row) == 3 and row[1]}  # noqa: PLR2004  # path, hash, size
