"""Installation of a lock: a source on this machine or on an index for each file, and the commands to install them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from envmedic import toml
from envmedic.errors import InputError, IntegrityError
from envmedic.installers.index import configuration
from envmedic.installers.index.credentials import without_credentials
from envmedic.installers.resolution import uv_options
from envmedic.installers.resolution.pythons import run_for
from envmedic.installers.resolution.uv_errors import error_from
from envmedic.installers.wheels import download_cache, wheel_files
from envmedic.installers.wheels.remote_metadata import local_file
from envmedic.model.facts import Interpreter
from envmedic.model.lock import LockedPackage
from envmedic.model.plan import Artifact
from envmedic.model.ports import ResolveRequest

_TIMEOUT_S = 900.0
_BUILT: frozenset[str] = frozenset({"sdist", "archive", "vcs", "editable", "directory"})
"""Kinds that uv builds itself, those that it fetches by their hash or commit."""


@dataclass(frozen=True)
class LockSources:
    """Sources of files."""

    uv: str
    find_links: tuple[str, ...] = ()
    offline: bool = False


@dataclass(frozen=True)
class Parts:
    """Wheels of a lock, and its other pip packages."""

    artifacts: tuple[Artifact, ...]
    built: tuple[LockedPackage, ...] = ()


def parts(wanted: Sequence[LockedPackage], python: Interpreter, sources: LockSources) -> Parts:
    """The files for the pip packages of a lock, none of them fetched yet.

    Raises InputError for packages without a source, IntegrityError if the indexes have only other content,
    NetworkError.
    """
    # All of them in one error before anything is fetched, not one per run.
    hopeless = [item for item in wanted if item.kind in {"editable", "directory", "unknown"} and not _is_here(item)]
    if hopeless:
        names = ", ".join(f"{item.name} {item.version} ({item.kind})" for item in hopeless)
        raise InputError(
            f"The lock cannot be carried out elsewhere: {names}",
            cause="They were installed from a directory that is not here, or from nobody knows where",
            hint="Build wheels of them, install those, and lock again",
        )
    files = [item for item in wanted if item.kind == "wheel"]
    folders = [path for where in sources.find_links if (path := _folder(where)) is not None]
    found = {item.name: here for item in files if (here := _here(item, folders)) is not None}
    # A URL of the lock is used as it is, without a look at an index: the hash decides after the download.
    found |= {
        item.name: _artifact(item, item.url, item.sha256)
        for item in files
        if item.name not in found and item.url and item.sha256
    }
    rest = [item for item in files if item.name not in found]
    found |= _asked(rest, python, sources) if rest else {}
    return Parts(tuple(found[item.name] for item in files), tuple(item for item in wanted if item.kind in _BUILT))


def _is_here(item: LockedPackage) -> bool:
    """Whether a local project lies where the lock says."""
    return item.path is not None and Path(item.path).is_dir()


def _folder(where: str) -> Path | None:
    path = local_file(where) or (Path(where) if "://" not in where else None)
    return path if path is not None and path.is_dir() else None


def _accepted(item: LockedPackage) -> frozenset[str]:
    return frozenset(filter(None, (item.sha256, *item.accepted)))


def _artifact(item: LockedPackage, url: str, sha256: str, size: int | None = None) -> Artifact:
    filename = url.partition("#")[0].rpartition("/")[2]
    # A lock with several accepted hashes (a lock of another tool) names one file, and the chosen wheel may be another.
    name = item.filename if item.filename and len(_accepted(item)) == 1 else filename.replace("%2B", "+")
    return Artifact(
        name=item.name,
        version=item.version,
        filename=name,
        url=url,
        sha256=sha256,
        size_bytes=size or item.size_bytes,
        local_path=str(download_cache.path_of(sha256, name)),
        requires=item.requires,
    )


def _here(item: LockedPackage, folders: Iterable[Path]) -> Artifact | None:
    """The wheel in one of the user's directories, identified by its hash."""
    for folder in folders:
        for path in sorted(folder.glob("*.whl")):
            if _is_of(path.name, item) and (digest := wheel_files.sha256_of(path)) in _accepted(item):
                return _artifact(item, path.absolute().as_uri(), digest, path.stat().st_size)
    return None


def _is_of(filename: str, item: LockedPackage) -> bool:
    try:
        name, version, _, _ = parse_wheel_filename(filename)
        return name == canonicalize_name(item.name) and version == Version(item.version)
    except (InvalidWheelFilename, InvalidVersion):
        return False


def _asked(wanted: Sequence[LockedPackage], python: Interpreter, sources: LockSources) -> dict[str, Artifact]:
    """Wheels of these releases on the user's indexes, with a hash that the lock accepts."""
    pins = tuple(f"{item.name}==={item.version}" for item in wanted)  # == would also accept a build with a local label
    request = ResolveRequest(pins=pins, find_links=sources.find_links, offline=sources.offline)
    told = uv_options.translate(configuration.read(None), request)
    with tempfile.TemporaryDirectory(prefix="envmedic-lock-") as name:
        asked, output = Path(name) / "asked.in", Path(name) / "pylock.toml"
        asked.write_text("".join(f"{pin}\n" for pin in pins), encoding="utf-8")
        argv = [
            *(sources.uv, "pip", "compile", "--format=pylock.toml", "--no-header", "--color=never", "--no-progress"),
            *("--no-deps", "--only-binary=:all:", "--no-python-downloads", f"--python={python.path}"),
            *(f"--python-version={python.version}", *told.arguments, "-o", str(output), str(asked)),
        ]
        result = run_for(python.path, argv, env=told.environment, timeout_s=_TIMEOUT_S)
        if result.returncode != 0:
            raise error_from(result, pins)
        document = toml.loads(output.read_text(encoding="utf-8"))
    offered = {
        str(canonicalize_name(package["name"])): list(_offered(package)) for package in document.get("packages", ())
    }
    # uv lists every wheel of a release: the best rank is what an installer would take.
    ranks = wheel_files.tag_ranks(python)
    return {item.name: _chosen(item, offered.get(item.name, []), ranks) for item in wanted}


def _offered(package: Mapping[str, Any]) -> Iterator[tuple[str, str, int | None]]:
    """URL, SHA-256 and size of each wheel."""
    for wheel in package.get("wheels", ()):
        url = wheel.get("url") or Path(wheel["path"]).absolute().as_uri()
        yield without_credentials(url.partition("#")[0]), wheel.get("hashes", {}).get("sha256", ""), wheel.get("size")


def _chosen(item: LockedPackage, offered: Sequence[tuple[str, str, int | None]], ranks: dict[Any, int]) -> Artifact:
    right = [wheel for wheel in offered if wheel[1] in _accepted(item)]
    if not right:
        names = ", ".join(f"{url.rpartition('/')[2]} {sha256[:12]}…" for url, sha256, _ in offered) or "no wheel"
        raise IntegrityError(
            f"No index here has {item.name} {item.version} with the content that the lock names",
            cause=f"locked: {', '.join(f'{text[:12]}…' for text in sorted(_accepted(item)))}; offered: {names}",
            hint="Name the index or a directory that has it, with --find-links or in pip's configuration",
        )
    url, sha256, size = min(
        right, key=lambda wheel: wheel_files.rank(wheel[0].rpartition("/")[2].replace("%2B", "+"), ranks)
    )
    return _artifact(item, url, sha256, size)


def build_commands(
    built: Sequence[LockedPackage], python: str, folder: Path, sources: LockSources
) -> Iterator[list[str]]:
    """Argv to build and install packages locked as source, each by hash or commit; requirement files go to `folder`."""
    request = ResolveRequest(pins=(), find_links=sources.find_links, offline=sources.offline)
    told = uv_options.translate(configuration.read(None), request)
    base = [sources.uv, "pip", "install", f"--python={python}", "--no-deps", "--no-progress", "--link-mode=copy"]
    hashed = [item for item in built if item.kind != "vcs" and item.path is None]
    if hashed:
        lines = folder / "sources.txt"
        lines.write_text("".join(f"{_line(item)}\n" for item in hashed), encoding="utf-8")
        # Locked as source, so built from source: with a wheel of the same version the hash would not match.
        only = [f"--no-binary={item.name}" for item in hashed if not (item.filename or "").endswith(".whl")]
        yield [*base, *told.arguments, *only, "--require-hashes", f"--requirements={lines}"]
    for item in built:
        if item.kind == "vcs":
            yield [*base, *told.arguments, _repository(item)]
        elif item.path is not None:
            yield [*base, *told.arguments, *(["--editable"] if item.kind == "editable" else []), item.path]


def _line(item: LockedPackage) -> str:
    if item.kind == "archive" and item.url:
        inside = f"#subdirectory={item.subdirectory}" if item.subdirectory else ""
        named = f"{item.name} @ {item.url}{inside}"
    else:
        named = f"{item.name}=={item.version}"
    return " ".join([named, *(f"--hash=sha256:{digest}" for digest in sorted(_accepted(item)))])


def _repository(item: LockedPackage) -> str:
    inside = f"#subdirectory={item.subdirectory}" if item.subdirectory else ""
    url = (item.url or "").removeprefix("git+").partition("#")[0]
    base, at, _ = url.rpartition("@")
    # The URL may carry a revision after "@"; a "/" behind it means that the "@" belongs to a login.
    plain = base if at and "/" not in url.rpartition("@")[2] else url
    return f"{item.name} @ git+{plain}@{item.revision}{inside}" if item.revision else f"{item.name} @ git+{url}{inside}"
