"""Builds small wheels: valid by default, so that a test breaks exactly the one thing it is about."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_EPOCH = (2020, 1, 1, 0, 0, 0)  # the same bytes for the same input


@dataclass(frozen=True)
class Wheel:
    """A wheel file on disk."""

    name: str
    version: str
    path: Path
    sha256: str
    size: int
    metadata: str

    @property
    def requirement(self) -> str:
        """The exact pin of it."""
        return f"{self.name}=={self.version}"


def make_wheel(
    directory: Path,
    name: str,
    version: str,
    *,
    files: Mapping[str, str | bytes] | None = None,
    requires: Sequence[str] = (),
    extras: Sequence[str] = (),
    requires_python: str | None = None,
    summary: str = "A wheel for tests",
    tags: Sequence[str] = ("py3-none-any",),
    entry_points: str | None = None,
    metadata: str | None = None,
    wheel: str | None = None,
    record: str | None = None,
    without: Sequence[str] = (),
) -> Wheel:
    """Write a wheel into `directory` and return it.

    `files` are archive paths with their content, by default one module named after the
    distribution. `metadata`, `wheel` and `record` replace the generated METADATA, WHEEL and RECORD;
    `without` leaves members of the dist-info out, such as ``RECORD``.
    """
    directory.mkdir(parents=True, exist_ok=True)
    stem = f"{name.replace('-', '_')}-{version}"
    info = f"{stem}.dist-info"
    metadata = metadata or metadata_text(
        name, version, requires=requires, extras=extras, requires_python=requires_python, summary=summary
    )
    members = _as_bytes(files if files is not None else {f"{name.replace('-', '_')}.py": f"version = {version!r}\n"})
    members[f"{info}/METADATA"] = metadata.encode()
    members[f"{info}/WHEEL"] = (wheel or _wheel_text(tags)).encode()
    if entry_points is not None:
        members[f"{info}/entry_points.txt"] = entry_points.encode()
    members[f"{info}/RECORD"] = (record if record is not None else record_text(members, info)).encode()
    for missing in without:
        del members[f"{info}/{missing}"]
    path = directory / f"{stem}-{_compressed(tags)}.whl"
    _write(path, members)
    content = path.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    return Wheel(name=name, version=version, path=path, sha256=digest, size=len(content), metadata=metadata)


def metadata_text(
    name: str,
    version: str,
    *,
    requires: Sequence[str] = (),
    extras: Sequence[str] = (),
    requires_python: str | None = None,
    summary: str = "A wheel for tests",
) -> str:
    """METADATA in core metadata 2.1."""
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", f"Summary: {summary}"]
    lines += [f"Requires-Python: {requires_python}"] if requires_python else []
    lines += [f"Provides-Extra: {extra}" for extra in extras]
    lines += [f"Requires-Dist: {requirement}" for requirement in requires]
    return "\n".join(lines) + "\n"


def record_text(members: Mapping[str, bytes], info: str) -> str:
    """RECORD for `members`, with hash and size of each and an empty entry for itself."""
    rows = [f"{path},{record_hash(content)},{len(content)}" for path, content in members.items()]
    return "\n".join([*rows, f"{info}/RECORD,,"]) + "\n"


def record_hash(content: bytes) -> str:
    """Hash of a file as RECORD states it."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=")
    return f"sha256={digest.decode()}"


def _wheel_text(tags: Sequence[str]) -> str:
    pure = "true" if all(tag.endswith("-any") for tag in tags) else "false"
    lines = ["Wheel-Version: 1.0", "Generator: envmedic-tests", f"Root-Is-Purelib: {pure}"]
    return "\n".join([*lines, *(f"Tag: {tag}" for tag in tags)]) + "\n"


def _compressed(tags: Sequence[str]) -> str:
    """Compressed tag set of the file name: each part joined with dots."""
    parts = zip(*(tag.split("-") for tag in tags), strict=True)
    return "-".join(".".join(dict.fromkeys(part)) for part in parts)


def _as_bytes(files: Mapping[str, str | bytes]) -> dict[str, bytes]:
    return {path: content.encode() if isinstance(content, str) else content for path, content in files.items()}


def _write(path: Path, members: Mapping[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, content in members.items():
            entry = zipfile.ZipInfo(member, _EPOCH)
            entry.external_attr = 0o644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
