"""Writes genuine conda packages, in both formats, with everything that ``info/`` holds.

Specification: https://docs.conda.io/projects/conda-build/en/stable/resources/package-spec.html
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Literal

PLACEHOLDER = ("/opt/placehold" + "_placehold" * 30)[:255]
"""Stands for the prefix in packages; as long as in real ones, so that binaries have room for the real prefix."""
SUMMARY = "A miniature for tests: not the real package"
_EPOCH = 1_700_000_000  # seconds; each package adds some of its own


@dataclass(frozen=True)
class Link:
    """A symbolic link in a package."""

    target: str


@dataclass(frozen=True)
class Program:
    """An executable file in a package."""

    data: bytes


Content = str | bytes | Link | Program


@dataclass(frozen=True)
class Package:
    """What a package says of itself, and its files by path."""

    name: str
    version: str
    build: str
    files: Mapping[str, Content] = field(default_factory=dict)
    depends: tuple[str, ...] = ()
    constrains: tuple[str, ...] = ()
    build_number: int = 0
    subdir: str = "linux-64"
    noarch: Literal["python", "generic"] | None = None
    track_features: str = ""
    entry_points: tuple[str, ...] = ()
    """Of noarch Python packages: ``pip = pip._internal.cli.main:main``; the installer writes the scripts."""
    license: str = "Apache-2.0"
    archive: Literal[".conda", ".tar.bz2"] = ".conda"
    verbatim: tuple[str, ...] = ()
    """Files whose placeholder is not declared, so that it stays."""

    @property
    def stem(self) -> str:
        """The file's name without its ending."""
        return f"{self.name}-{self.version}-{self.build}"

    @property
    def filename(self) -> str:
        """The file's name."""
        return self.stem + self.archive

    @property
    def spec(self) -> str:
        """The exact spec of it."""
        return f"{self.name}={self.version}={self.build}"


def write(channel: Path, package: Package) -> Path:
    """Write `package` into its subdirectory of `channel` and return the file."""
    folder = channel / package.subdir
    folder.mkdir(parents=True, exist_ok=True)
    members = {**package.files, **_info(package)}
    seconds = _EPOCH + int(_sha256(repr(sorted(package.files.items())).encode())[:5], 16)
    if package.archive == ".tar.bz2":
        with tarfile.open(folder / package.filename, "w:bz2") as archive:
            _fill(archive, members, seconds)
    else:
        from conda_package_streaming.create import conda_builder

        with conda_builder(package.stem, str(folder), compression_level=3) as archive:
            _fill(archive, members, seconds)
    return folder / package.filename


def _fill(archive: tarfile.TarFile, members: Mapping[str, Content], seconds: int) -> None:
    for path, content in members.items():
        entry = tarfile.TarInfo(path)
        entry.mtime = seconds  # differs between packages: equal times would keep stale bytecode of another version
        if isinstance(content, Link):
            entry.type, entry.linkname = tarfile.SYMTYPE, content.target
            archive.addfile(entry)
            continue
        entry.mode = 0o755 if isinstance(content, Program) else 0o644
        data = content_bytes(content)
        entry.size = len(data)
        archive.addfile(entry, io.BytesIO(data))


def _info(package: Package) -> dict[str, Content]:
    entries = [_path_entry(path, package) for path in package.files]
    info = {
        "info/index.json": _json(_index(package)),
        "info/paths.json": _json({"paths": entries, "paths_version": 1}),
        "info/files": "".join(f"{path}\n" for path in package.files),
        "info/about.json": _json({"license": package.license, "summary": SUMMARY, "channels": []}),
    }
    prefixed = [entry for entry in entries if "prefix_placeholder" in entry]
    if prefixed:
        lines = [f"{item['prefix_placeholder']} {item['file_mode']} {item['_path']}\n" for item in prefixed]
        info["info/has_prefix"] = "".join(lines)
    if package.noarch == "python":
        noarch = {"type": "python", "entry_points": list(package.entry_points)}
        info["info/link.json"] = _json({"noarch": noarch, "package_metadata_version": 1})
    return dict(info)


def _index(package: Package) -> dict[str, Any]:
    index: dict[str, Any] = {
        "name": package.name,
        "version": package.version,
        "build": package.build,
        "build_number": package.build_number,
        "depends": list(package.depends),
        "constrains": list(package.constrains),
        "license": package.license,
        "subdir": package.subdir,
        "arch": None if package.subdir == "noarch" else "x86_64",
        "platform": None if package.subdir == "noarch" else "linux",
        "timestamp": _EPOCH * 1000,
    }
    if package.noarch:
        index["noarch"] = package.noarch
    if package.track_features:
        index["track_features"] = package.track_features
    return index


def _path_entry(path: str, package: Package) -> dict[str, Any]:
    content = package.files[path]
    data = content_bytes(_resolved(path, package.files))
    kind = "softlink" if isinstance(content, Link) else "hardlink"
    entry = {"_path": path, "path_type": kind, "sha256": _sha256(data), "size_in_bytes": len(data)}
    # Bytecode has its strings prefixed with their length: a declared one would be corrupted by the replacement.
    declared = kind == "hardlink" and not path.endswith(".pyc") and path not in package.verbatim
    if declared and PLACEHOLDER.encode() in data:
        entry |= {"prefix_placeholder": PLACEHOLDER, "file_mode": "binary" if b"\0" in data else "text"}
    return entry


def _resolved(path: str, files: Mapping[str, Content]) -> Content:
    """What a link leads to within the package; nothing for one that leads out of it."""
    content = files.get(path, b"")
    if not isinstance(content, Link):
        return content
    parts: list[str] = []
    for part in (PurePosixPath(path).parent / content.target).parts:
        if part == "..":
            parts.pop()
        else:
            parts.append(part)
    return _resolved("/".join(parts), files)


def content_bytes(content: Content) -> bytes:
    """The bytes of a file; none for a link."""
    if isinstance(content, Link):
        return b""
    data = content.data if isinstance(content, Program) else content
    return data.encode() if isinstance(data, str) else data


def dist_info(
    name: str,
    version: str,
    files: Mapping[str, Content],
    *,
    folder: str,
    requires: Sequence[str] = (),
    scripts: Sequence[str] = (),
    entry_points: str = "",
) -> dict[str, Content]:
    """Metadata as conda-build leaves it: INSTALLER says conda, and RECORD lists every file of `files`.

    `files` are paths in the package below `folder`, which stands for ``site-packages``; `scripts` are paths in RECORD
    of the scripts that the installer writes.
    """
    info = f"{folder}/{name.replace('-', '_')}-{version}.dist-info"
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", f"Summary: {SUMMARY}"]
    lines += [f"Requires-Dist: {requirement}" for requirement in requires]
    made: dict[str, Content] = {
        f"{info}/METADATA": "\n".join(lines) + "\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: conda-build\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/INSTALLER": "conda\n",
        f"{info}/REQUESTED": "",
    }
    if entry_points:
        made[f"{info}/entry_points.txt"] = entry_points
    return made | {f"{info}/RECORD": record({**files, **made}, folder=folder, itself=f"{info}/RECORD", scripts=scripts)}


def record(files: Mapping[str, Content], *, folder: str, itself: str, scripts: Sequence[str] = ()) -> str:
    """RECORD of a distribution whose ``site-packages`` is `folder` in the package."""
    rows = [f"{script},," for script in scripts]
    for path, content in files.items():
        if path.startswith(f"{folder}/") and not isinstance(content, Link):
            data = content_bytes(content)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            rows.append(f"{path.removeprefix(folder + '/')},sha256={digest},{len(data)}")
    return "\n".join([*rows, f"{itself.removeprefix(folder + '/')},,"]) + "\n"


def write_channel(directory: Path, packages: Iterable[Package]) -> str:
    """Write packages and their index; return the channel's URL. An existing channel gets them in addition."""
    every = tuple(packages)
    for subdir in {"noarch", "linux-64", *(package.subdir for package in every)}:
        (directory / subdir).mkdir(parents=True, exist_ok=True)
        index = directory / subdir / "repodata.json"
        said: dict[str, Any] = {"info": {"subdir": subdir}, "repodata_version": 1, "packages": {}, "packages.conda": {}}
        said |= json.loads(index.read_text()) if index.exists() else {}
        for package in (package for package in every if package.subdir == subdir):
            data = write(directory, package).read_bytes()
            kind = "packages.conda" if package.archive == ".conda" else "packages"
            digests = {"md5": hashlib.md5(data).hexdigest(), "sha256": _sha256(data), "size": len(data)}
            said[kind][package.filename] = {**_index(package), **digests}
        index.write_text(_json(said))
    return directory.as_uri()


def _json(value: object) -> str:
    return json.dumps(value, indent=2) + "\n"


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
