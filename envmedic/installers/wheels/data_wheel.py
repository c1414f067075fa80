"""The wheel `envmedic-data` on the user's indexes, and the data file in it. Nothing of the wheel is installed or run."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import re
import sys
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version

from envmedic import safe_io
from envmedic.errors import InstallerError, IntegrityError, NetworkError, NoSolution
from envmedic.installers.index import pages
from envmedic.installers.index.configuration import IndexConfiguration
from envmedic.installers.index.http import IndexSession
from envmedic.installers.uv import find_uv
from envmedic.installers.wheels import wheel_files
from envmedic.model.answers.family import Offered
from envmedic.proc import ask

_EMITTED = re.compile(r"^--index-url (\S+)$", re.MULTILINE)
_TIMEOUT_S = 60.0
_RECORD = re.compile(r"[^/]+\.dist-info/RECORD")
LARGEST_WHEEL = 4 << 20
"""Bytes of a wheel of data; those of 2026 have a tenth of a million."""


def indexes(configuration: IndexConfiguration) -> tuple[str, ...]:
    """Return the URLs of the user's indexes in uv's order, the default one last. Raises InstallerError."""
    if configuration.pip.no_index or configuration.uv.no_index:
        return ()
    uv, pip = configuration.uv, configuration.pip
    return (*uv.extra_indexes, *pip.extra_index_urls, uv.default_index or pip.index_url or _default())


def _default() -> str:
    """Return what uv asks where nobody has set an index."""
    argv = (find_uv(), "pip", "compile", f"--python={sys.executable}", "--emit-index-url", "--color=never", "-")
    result = ask(argv, timeout_s=_TIMEOUT_S)
    found = _EMITTED.search(result.stdout)
    if found is None:
        raise InstallerError(
            "uv does not say which index it asks",
            cause=result.stderr.strip() or None,
            hint="Set one for pip or uv, such as PIP_INDEX_URL, or name a file: envmedic data update FILE",
        )
    return found[1]


def offered(
    project: str, *, session: IndexSession, urls: Sequence[str], find_links: Sequence[str]
) -> tuple[Offered, ...]:
    """Return the wheels of a project: those of `find_links`, and those of the first index that has any.

    Raises NetworkError.
    """
    found = [file for place in find_links for file in _linked(place, session)]
    wheels = [file for file in found if _version(file, project) is not None]
    for url in urls:
        there = [file for file in pages.project_files(session, url, project) if _version(file, project) is not None]
        if there:
            return (*wheels, *there)
    return tuple(wheels)


def chosen(files: Sequence[Offered], project: str, version: str | None) -> Offered:
    """Return the newest wheel that is neither withdrawn nor a pre-release, or that of `version`. Raises NoSolution."""
    ranked = sorted(files, key=lambda file: _version(file, project) or Version("0"), reverse=True)
    for file in ranked:
        found = _version(file, project)
        if found is None or file.yanked or found.is_prerelease:
            continue
        if version is None or found == Version(version):
            return file
    wanted = f"{project} {version}" if version else project
    raise NoSolution(
        f"No wheel of {wanted} was found",
        cause="your indexes have none" if not files else f"there are other versions: {_listed(files, project)}",
        hint="Name a wheel or a data file: envmedic data update FILE",
    )


def _listed(files: Sequence[Offered], project: str) -> str:
    versions = sorted({found for file in files if (found := _version(file, project)) is not None}, reverse=True)
    return ", ".join(map(str, versions[:5]))


def _version(file: Offered, project: str) -> Version | None:
    try:
        name, version, _, _ = parse_wheel_filename(file.filename)
    except (InvalidWheelFilename, ValueError):
        return None
    return version if name == project else None


def _linked(place: str, session: IndexSession) -> Iterator[Offered]:
    if urlsplit(place).scheme in {"http", "https"}:
        page = session.request("GET", place).data
        yield from pages.from_html(page.decode("utf-8", "replace"), place)
        return
    folder = Path(place.removeprefix("file://")).expanduser().absolute()
    try:
        names = sorted(item.name for item in folder.iterdir())
    except OSError as error:
        raise NetworkError(
            f"{folder} cannot be listed", cause=error.strerror, hint="Name a directory of wheels with --find-links"
        ) from error
    yield from (Offered(filename=name, url=(folder / name).as_uri()) for name in names)


def fetched(file: Offered, session: IndexSession) -> bytes:
    """Return the content of a wheel. Raises NetworkError, and IntegrityError where it is not what the index says."""
    if file.url.startswith("file://"):
        path = Path(file.url.removeprefix("file://"))
        return _bounded(safe_io.read(path, LARGEST_WHEEL, follow=True), file)
    if file.sha256 is None:
        raise IntegrityError(
            f"The index has no SHA-256 of {file.filename}",
            cause="what cannot be checked is not taken",
            hint="Use an index that states hashes, or fetch the file yourself: envmedic data update FILE",
        )
    with session.streamed(file.url) as answer:
        content = answer.read(LARGEST_WHEEL + 1)
    return _bounded(content, file)


def _bounded(content: bytes, file: Offered) -> bytes:
    if len(content) > LARGEST_WHEEL:
        raise wheel_files.broken_wheel(file.filename, f"it has more than {LARGEST_WHEEL} bytes")
    if file.sha256 is not None and hashlib.sha256(content).hexdigest() != file.sha256:
        raise IntegrityError(
            f"{file.filename} is not the file that the index names",
            cause="its SHA-256 is another one",
            hint="Try again, or ask whoever runs the index",
        )
    return content


def member(content: bytes, filename: str, name: str, limit: int) -> bytes:
    """Return a file in a wheel, which must have the hash that the wheel's RECORD states. Raises IntegrityError."""
    try:
        with wheel_files.unpacking(), zipfile.ZipFile(io.BytesIO(content)) as archive:
            # of two with one name another reader would take the other
            (record,) = (item for item in archive.namelist() if _RECORD.fullmatch(item))
            (entry,) = (item for item in archive.infolist() if item.filename == name)
            stated = _stated(wheel_files.member(archive, record).decode("utf-8", "replace"), name)
            with archive.open(entry) as file:
                found = file.read(limit + 1)
    except (ValueError, KeyError, zipfile.BadZipFile, csv.Error) as error:
        raise wheel_files.broken_wheel(filename, f"it has not {name} and RECORD, once each ({error})") from error
    if len(found) > limit:
        raise wheel_files.broken_wheel(filename, f"{name} in it has more than {limit} bytes")
    digest = base64.urlsafe_b64encode(hashlib.sha256(found).digest()).rstrip(b"=").decode()
    if stated != f"sha256={digest}":
        raise wheel_files.broken_wheel(filename, f"{name} in it has not the hash of its RECORD")
    return found


def _stated(record: str, name: str) -> str | None:
    rows = csv.reader(io.StringIO(record))
    return next((row[1] for row in rows if len(row) > 1 and row[0] == name), None)
