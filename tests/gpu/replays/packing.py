"""Wheels made of what is installed: the files that a distribution's RECORD names, from a healthy environment."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import zipfile
from pathlib import Path

LEFT_OUT = frozenset({"RECORD", "INSTALLER", "REQUESTED", "direct_url.json", "uv_build.json", "uv_cache.json"})
"""Files of a dist-info that an installer writes."""


def pack(site: Path, name: str, folder: Path) -> Path:
    """Write the wheel of the distribution `name`, as its metadata directory spells it, to `folder`.

    Raises FileNotFoundError where it or one of its files is not there, so that only what is whole is packed.
    """
    info = next((path for path in sorted(site.glob(f"{name}-*.dist-info"))), None)
    if info is None:
        raise FileNotFoundError(f"no {name} in {site}")
    stem = info.name.removesuffix(".dist-info")
    target = folder / f"{stem}-{_tag(info / 'WHEEL')}.whl"
    rows = []
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for path in _files(site, info):
            inside = path.relative_to(site).as_posix()
            archive.write(path, inside)
            rows.append((inside, f"sha256={_digest(path)}", str(path.stat().st_size)))
        record = io.StringIO()
        csv.writer(record, lineterminator="\n").writerows([*rows, (f"{info.name}/RECORD", "", "")])
        archive.writestr(f"{info.name}/RECORD", record.getvalue())
    return target


def _files(site: Path, info: Path) -> list[Path]:
    """What the wheel holds: no byte code, and no scripts, which the installer makes of the entry points."""
    with (info / "RECORD").open(encoding="utf-8", newline="") as file:
        names = [row[0] for row in csv.reader(file) if row]
    chosen = [name for name in names if not name.startswith(("..", "/")) and "__pycache__" not in name]
    own = {f"{info.name}/{name}" for name in LEFT_OUT}
    return [site / name for name in chosen if name not in own]


def _tag(wheel: Path) -> str:
    """The tags of the file's name, of the lines of WHEEL."""
    lines = wheel.read_text(encoding="utf-8").splitlines()
    tags = [line.partition(":")[2].strip().split("-") for line in lines if line.startswith("Tag:")]
    return "-".join(".".join(dict.fromkeys(part)) for part in zip(*tags, strict=True))


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256") if hasattr(hashlib, "file_digest") else _slowly(file)
    return base64.urlsafe_b64encode(digest.digest()).rstrip(b"=").decode()


def _slowly(file: io.BufferedReader) -> hashlib._Hash:
    """`hashlib.file_digest` of Python 3.10."""
    digest = hashlib.sha256()
    while block := file.read(1 << 20):
        digest.update(block)
    return digest
