"""Installed distributions as constraints for uv that bind new wheels and bring no requirements of their own."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path


def hold(versions: Mapping[str, str], folder: Path) -> Iterator[str]:
    """Write an empty wheel of each distribution into `folder`, and yield the constraint that names it.

    A plain ``name==version`` would not do: uv would look for that release on the index, where it may be gone, and for
    what it requires, which installed distributions need not meet.
    """
    for name, version in versions.items():
        stem = f"{name.replace('-', '_')}-{version}"
        wheel = folder / f"{stem}-py3-none-any.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            tags = "Wheel-Version: 1.0\nGenerator: envmedic\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
            archive.writestr(f"{stem}.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
            archive.writestr(f"{stem}.dist-info/WHEEL", tags)
            archive.writestr(f"{stem}.dist-info/RECORD", "")
        yield f"{name} @ {wheel.as_uri()}"
