"""Use cases ``data status``, ``data update`` and ``data pin``: the compatibility tables of their own version."""

from __future__ import annotations

import datetime as dt
import hashlib
import os
import shlex
from contextlib import closing
from pathlib import Path

import msgspec

from envmedic import safe_io
from envmedic.api.context.settings import Settings
from envmedic.compat import data_files, tables, versions
from envmedic.compat.data_files import DataFile, NotUsable
from envmedic.engine.fs.durable import write_durably
from envmedic.errors import InputError, IntegrityError, PreflightError
from envmedic.model.answers.data import Data, IgnoredFile

_KEPT = 3
"""Data files that stay after an update, the newest ones, besides a pinned one."""


def update(settings: Settings, source: str | None = None, *, sha256: str | None = None) -> Data:
    """Fetch the newest data file from the user's indexes, or take it from the file `source`.

    What is in use stays where the new one is older. Raises NetworkError, NoSolution, IntegrityError, InputError, and
    PreflightError where it cannot be kept.
    """
    name, content = _from_indexes(settings, None) if source is None else (source, _from_file(source, sha256))
    found = _parsed(content, name)
    before, shipped = tables.version(), tables.shipped_version()
    if versions.parsed(found.version) <= versions.parsed(shipped):
        return _told(status(), f"Nothing to do: {name} is of version {found.version}, the shipped tables of {shipped}")
    _keep(content, found)
    after = _again()
    if after.version == before:
        held = f", version {after.pinned} is pinned" if after.pinned else ""
        return _told(after, f"Version {found.version} is kept; the tables in use stay at {after.version}{held}")
    return _told(after, f"The tables in use are of version {after.version}, before {before}", changed=True)


def pin(settings: Settings, version: str | None, *, off: bool = False) -> Data:
    """Keep the tables at `version`, by default the one in use, or with `off` at the newest one again.

    A version that is not here is fetched from the user's indexes. Raises as `update` does, and InputError for no version.
    """
    before = tables.version()
    path = data_files.directory() / data_files.PIN
    if off:
        path.unlink(missing_ok=True)
        after = _again()
        told = f"No version is pinned; the tables in use are of {after.version}"
        return _told(after, told, changed=after.version != before)
    version = version or before
    if not data_files.is_version(version):
        raise InputError(f"{version!r} is no version of tables", hint="Versions are days: envmedic data pin 2026.11.4")
    if version not in {tables.shipped_version(), before, *(there for there, _ in data_files.stored())}:
        name, content = _from_indexes(settings, version)
        found = _parsed(content, name)
        if found.version != version:
            raise IntegrityError(f"{name} has data of version {found.version}, not {version}", hint="Name another one")
        _keep(content, found)
    _write(path, version.encode() + b"\n")
    after = _again()
    return _told(after, f"The tables stay at version {after.version}", changed=after.version != before)


def _from_file(source: str, sha256: str | None) -> bytes:
    try:
        content = safe_io.read(Path(source), data_files.LARGEST, follow=True)
    except OSError as error:
        raise InputError(
            f"{source} cannot be read", cause=error.strerror, hint="Name a wheel of envmedic-data or a data file"
        ) from error
    if sha256 is not None and hashlib.sha256(content).hexdigest() != sha256.lower():
        raise IntegrityError(
            f"{source} has not the SHA-256 that you state", cause="it is another file", hint="Fetch it again"
        )
    return _unpacked(content, source) if content[:2] == b"PK" else content


def _from_indexes(settings: Settings, version: str | None) -> tuple[str, bytes]:
    from envmedic.installers.index import configuration
    from envmedic.installers.index.http import IndexSession
    from envmedic.installers.wheels import data_wheel

    found = configuration.read(None)
    urls = () if settings.offline else data_wheel.indexes(found)
    places = (*settings.find_links, *found.pip.find_links)
    if settings.offline:
        places = tuple(place for place in places if "://" not in place or place.startswith("file://"))
    with closing(IndexSession(found)) as session:
        files = data_wheel.offered(data_files.DISTRIBUTION, session=session, urls=urls, find_links=places)
        file = data_wheel.chosen(files, data_files.DISTRIBUTION, version)
        return file.filename, _unpacked(data_wheel.fetched(file, session), file.filename)


def _unpacked(content: bytes, name: str) -> bytes:
    from envmedic.installers.wheels import data_wheel

    return data_wheel.member(content, name, data_files.MEMBER, data_files.LARGEST)


def _parsed(content: bytes, name: str) -> DataFile:
    try:
        found = data_files.parse(content, tables.RENEWABLE)
        _require_past(found)
    except ValueError as error:  # of the tables, or of a version that is no day
        raise IntegrityError(
            f"{name} is no data file that can be used",
            cause=str(error),
            hint="Fetch it again, or take one that was made for this envmedic; the tables in use stay",
        ) from error
    return found


def _require_past(found: DataFile) -> None:
    """Refuse tables of the future: they would count as the newest ones for ever."""
    tomorrow = dt.datetime.now(dt.timezone.utc).date() + dt.timedelta(days=1)
    if dt.date(*map(int, found.version.split(".")[:3])) > tomorrow:
        raise NotUsable(f"its version {found.version} is a day that has not come")


def _keep(content: bytes, found: DataFile) -> None:
    _write(data_files.directory() / data_files.file_name(found), content)
    pinned = data_files.read_pin()
    for version, path in data_files.stored()[_KEPT:]:
        if version not in {pinned, found.version}:
            path.unlink(missing_ok=True)


def _write(path: Path, content: bytes) -> None:
    _own_directory()
    try:
        write_durably(path, content)
    except FileExistsError as error:
        raise PreflightError(
            f"{path} is being written", cause="another update runs", hint="Try again when it has ended"
        ) from error
    except OSError as error:
        raise PreflightError(
            f"{path} cannot be written",
            cause=error.strerror,
            hint="Make room or give yourself the directory, then try again",
        ) from error


def _own_directory() -> None:
    """Make the directory of data files. Raises PreflightError where it is not this user's."""
    folder, cause = data_files.directory(), ""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        data_files.require_own(os.lstat(folder), "directory")
        if folder.parent.stat().st_uid not in {os.geteuid(), 0}:
            cause = "the directory above it belongs to another user"
    except (OSError, NotUsable) as found:
        cause = data_files.told(found)
    if cause:
        raise PreflightError(
            f"{folder} cannot hold your data files",
            cause=cause,
            hint=f"Move it away and try again: mv {shlex.quote(str(folder))} {shlex.quote(str(folder))}.old",
        )


def _again() -> Data:
    """Return the tables that are in use now."""
    tables.forget()
    return status()


def _told(found: Data, told: str, *, changed: bool = False) -> Data:
    return msgspec.structs.replace(found, told=told, changed=changed)


def status() -> Data:
    """Return the tables in use. Reads, and asks nobody."""
    chosen = tables.chosen()
    return Data(
        version=tables.version(),
        origin=chosen.origin,
        path=chosen.path,
        sha256=chosen.found.sha256 if chosen.found is not None else None,
        shipped=tables.shipped_version(),
        pinned=chosen.pinned,
        tables=tables.written(),
        newest_torch=max(tables.releases(), key=versions.parsed),
        directory=str(data_files.directory()),
        ignored=tuple(IgnoredFile(path=item.path, reason=item.reason, damaged=item.damaged) for item in chosen.ignored),
    )
