"""Comparison of a wheel with an installed distribution, by the hashes of their files.

RECORD in a wheel lists each file with its hash, and so does RECORD of the installed distribution (PyPA specification
"Recording installed projects"). If every hash agrees, the distribution was installed from that content.
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


def installed_hashes(item: Distribution, environment: Environment) -> Hashes:
    """Hashes in RECORD of an installed distribution; empty without a readable RECORD."""
    path = Path(environment.real_prefix) / item.metadata_path / "RECORD"
    try:
        return _hashes(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, csv.Error):
        return {}  # nothing is proven by it


def wheel_hashes(file: IO[bytes]) -> Hashes:
    """Hashes in RECORD of an open wheel; empty without one. Raises `zipfile.BadZipFile` for a damaged zip."""
    with wheel_files.unpacking(), zipfile.ZipFile(file) as archive:
        # count("/") == 1: a wheel may vendor other distributions, with their own RECORD further down.
        members = [name for name in archive.namelist() if name.endswith(".dist-info/RECORD") and name.count("/") == 1]
        if len(members) != 1:
            return {}
        try:
            return _hashes(wheel_files.member(archive, members[0]).decode("utf-8", "replace"))
        except (ValueError, csv.Error):
            return {}  # nothing is proven by it


def same_content(wheel: Hashes, here: Hashes) -> bool:
    """Whether every file of the wheel is installed with its hash.

    Files of ``.data`` directories do not count: installers move them, and rewrite the scripts among them.
    """
    compared = {path: digest for path, digest in wheel.items() if ".data/" not in path}
    # Only in this direction: an installation has more files than its wheel (byte code, INSTALLER, scripts), and a wheel
    # without hashes proves nothing.
    return bool(compared) and all(here.get(path) == digest for path, digest in compared.items())


def _hashes(record: str) -> dict[str, str]:
    hashes = {}
    # RECORD lists itself without a hash; a row of another length is damaged, and proves nothing.
    for row in csv.reader(io.StringIO(record)):
        match row:
            case [path, digest, _size] if digest:
                hashes[path] = digest
    return hashes
