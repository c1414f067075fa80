"""Downloads of wheels into the cache: streamed, resumable, verified, and visible only when complete."""

from __future__ import annotations

import errno
import hashlib
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from urllib3.exceptions import HTTPError

from envmedic.errors import IntegrityError, NetworkError, PreflightError
from envmedic.installers.index.http import IndexSession, TransientStatus, may_pass, network_error
from envmedic.installers.wheels import download_cache, wheel_files
from envmedic.installers.wheels.cancellable import Hold, beside
from envmedic.installers.wheels.remote_metadata import local_file
from envmedic.model.events import Emit, Notice, Progress
from envmedic.model.plan import Artifact

if TYPE_CHECKING:
    from hashlib import _Hash

DOWNLOAD_CHUNK = 64 * 1024
"""Bytes per read from the network; a broken connection loses at most that many."""
REPORT_S = 0.1
"""Seconds between two progress events."""


def fetch(artifacts: Sequence[Artifact], *, offline: bool, emit: Emit, session: IndexSession) -> None:
    """Put every wheel into the cache at its `local_path`, verified.

    During a download `emit` is called ten times a second, also while no data arrives: an exception from it
    ends the download at once. Raises `NetworkError` (unreachable, or offline and absent), `IntegrityError` (another
    content), `PreflightError` (no space). Data fetched before an error stays for the next run.
    """
    meter = Meter(emit, artifacts)
    for artifact in artifacts:
        target = Path(artifact.local_path)
        with disk_errors(target), download_cache.locked(target.parent):
            meter.begin(artifact)
            if not _cached(artifact, target, meter):
                _require_source(artifact, offline=offline)
                _obtain(artifact, target, meter, session)
            meter.end(artifact)


class Meter:
    """Counts bytes over all wheels, whether downloaded, copied or verified in the cache."""

    def __init__(self, emit: Emit, artifacts: Sequence[Artifact]) -> None:
        sizes = [item.size_bytes for item in artifacts]
        self._emit = emit
        self._total = sum(size for size in sizes if size is not None) if None not in sizes else None
        self._before = 0
        self._done = 0
        self._label = ""
        self._size: int | None = None
        self._reported = 0.0

    def begin(self, artifact: Artifact) -> None:
        """Start with one wheel."""
        self._label, self._done, self._size = artifact.filename, 0, artifact.size_bytes

    def at(self, done: int) -> None:
        """Set the number of finished bytes of this wheel."""
        self._done = done
        if time.monotonic() - self._reported >= REPORT_S:
            self._report()

    def end(self, artifact: Artifact) -> None:
        """Count this wheel as complete."""
        whole = artifact.size_bytes or self._done
        self._before += whole
        self._done = 0
        self._size = whole
        self._report(item_done=whole)

    def _report(self, item_done: int | None = None) -> None:
        self._reported = time.monotonic()
        self._emit(
            Progress(
                stage="fetch",
                unit="bytes",
                done=self._before + self._done,
                total=self._total,
                label=self._label,
                item_done=self._done if item_done is None else item_done,
                item_total=self._size,
            )
        )

    def notice(self, code: str, message: str) -> None:
        """Emit a warning."""
        self._emit(Notice(code=code, message=message, level="warning"))


def _cached(artifact: Artifact, target: Path, meter: Meter) -> bool:
    """Whether the cache holds the wheel; deletes a file with another hash."""
    if not target.is_file():
        return False
    digest = hashlib.sha256()
    with target.open("rb") as file:
        _hash_file(file, digest, meter)
    # Hashed on every use: the cache may be years old, and an install from damaged content would fail verification only
    # after minutes.
    if digest.hexdigest() == artifact.sha256:
        return True
    meter.notice("damaged-cache", f"{target} was damaged and is fetched again")
    target.unlink()
    return False


def _hash_file(file: BinaryIO, digest: _Hash, meter: Meter | None = None) -> int:
    done = 0
    while chunk := file.read(wheel_files.CHUNK):
        digest.update(chunk)
        done += len(chunk)
        if meter is not None:
            meter.at(done)
    return done


def _require_source(artifact: Artifact, *, offline: bool) -> None:
    if offline and local_file(artifact.url) is None:
        raise NetworkError(
            f"{artifact.filename} is not in the cache, and --offline forbids to download it",
            cause=f"it lies at {artifact.url}",
            hint="Run once without --offline, or give a directory that holds it with --find-links",
        )


def _obtain(artifact: Artifact, target: Path, meter: Meter, session: IndexSession) -> None:
    """Fetch to a partial file, verify it, and move it into place."""
    partial = target.with_name(target.name + ".partial")
    source = local_file(artifact.url)
    if source is not None:
        digest = _copy(source, partial, meter)
    else:
        resumed = partial.is_file()
        digest = _download(artifact, partial, meter, session)
        if (
            digest != artifact.sha256 and resumed
        ):  # the partial file may have been of other content: once more from the start
            partial.unlink()
            digest = _download(artifact, partial, meter, session)
    try:
        _verify(artifact, partial, digest)
    except IntegrityError:
        partial.unlink()
        raise
    partial.replace(target)


def _download(artifact: Artifact, partial: Path, meter: Meter, session: IndexSession) -> str:
    """Download to the partial file, and return the SHA-256 of all of it."""
    download = Download(artifact, partial, session)
    # A read in requests cannot be interrupted from outside, except by its own timeout of a minute.
    return beside(download.run, lambda: meter.at(download.done), download.hold)


def _copy(source: Path, partial: Path, meter: Meter) -> str:
    """Copy a local wheel, sharing its blocks where the file system can, and return its SHA-256."""
    try:
        original = source.open("rb")
    except OSError as error:
        raise NetworkError(
            f"{source} cannot be read",
            cause=error.strerror,
            hint="Plan again: the wheel was moved or deleted since",
        ) from error
    digest = hashlib.sha256()
    with original, partial.open("w+b") as copy:
        if not wheel_files.share_blocks(original.fileno(), copy.fileno()):
            shutil.copyfileobj(original, copy, wheel_files.CHUNK)
        # The copy is hashed, not the source: after a reflink or copy, only that is what gets installed.
        copy.seek(0)
        _hash_file(copy, digest, meter)
    return digest.hexdigest()


def _verify(artifact: Artifact, partial: Path, digest: str) -> None:
    """Raise `IntegrityError` unless hash, size and content are those of the wheel."""
    size = partial.stat().st_size
    hint = "Plan again; if it stays, the index or mirror serves other content than it announces"
    if digest != artifact.sha256:
        raise IntegrityError(
            f"{artifact.filename} has another hash than announced",
            cause=f"expected sha256 {artifact.sha256}, got {digest} ({size} bytes)",
            hint=hint,
        )
    if artifact.size_bytes is not None and size != artifact.size_bytes:
        raise IntegrityError(
            f"{artifact.filename} has another size than announced",
            cause=f"expected {artifact.size_bytes} bytes, got {size}",
            hint=hint,
        )
    wheel_files.require_wheel(partial, artifact.filename)


@dataclass
class Download:
    """The download of one wheel into a partial file, resumed where an earlier one ended.

    It runs in a thread that its caller may abandon, and touches the file only under `hold`.
    """

    artifact: Artifact
    partial: Path
    session: IndexSession
    hold: Hold = field(default_factory=Hold)
    digest: _Hash = field(default_factory=hashlib.sha256)
    done: int = 0
    failures: int = 0

    def run(self) -> str:
        """Download to the end and return the SHA-256 of all of it. Raises `NetworkError`."""
        self._take_up()
        while True:
            before = self.done
            try:
                self._part()
            except (HTTPError, TransientStatus) as error:
                # Progress resets the count: a slow line that breaks every few minutes still delivers a wheel of
                # gigabytes.
                self.failures = 1 if self.done > before else self.failures + 1
                if self.failures >= self.session.patience.attempts or not may_pass(error):
                    raise network_error(self.artifact.url, error) from error
            else:
                return self.digest.hexdigest()
            self.session.patience.pause(self.failures)

    def _take_up(self) -> None:
        if self.partial.is_file():
            with self.partial.open("rb") as file:
                self.done = _hash_file(file, self.digest)
        size = self.artifact.size_bytes
        # Of full size but not moved into place: other content, or a run that was killed between. Range would give 416.
        if size is not None and self.done >= size:
            self._start_over()
        _require_space(self.partial.parent, (size or 0) - self.done, self.artifact.filename)

    def _start_over(self) -> None:
        with self.hold:
            self.partial.unlink(missing_ok=True)
        self.digest, self.done = hashlib.sha256(), 0

    def _part(self) -> None:
        """Download the rest, until the end or until the connection breaks."""
        headers = {"Range": f"bytes={self.done}-"} if self.done else {}
        answer = self.session.once(
            "GET", self.artifact.url, headers=headers, accept=(200, 206, 416) if self.done else (200,), stream=True
        )
        with answer:
            if self.done and answer.status != HTTPStatus.PARTIAL_CONTENT:  # Range was ignored, or refused
                self._start_over()
                if answer.status != HTTPStatus.OK:  # 416: no bytes after those we have, so ask for all
                    return self._part()
            with self._opened() as file:
                # The hash runs along with the download: a second read of several gigabytes would double the time on a
                # slow disk.
                for chunk in answer.stream(DOWNLOAD_CHUNK):
                    with self.hold:
                        file.write(chunk)
                        file.flush()  # closing it has nothing left to write
                    self.digest.update(chunk)
                    self.done += len(chunk)
        return None

    def _opened(self) -> BinaryIO:
        with self.hold:
            return self.partial.open("ab")


def _require_space(folder: Path, needed: int, filename: str) -> None:
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise PreflightError(
            f"No space for {filename} in the wheel cache",
            cause=f"{needed} bytes are needed and {free} are free at {folder}",
            hint="Free some space, or set XDG_CACHE_HOME to a directory on a larger disk",
        )


@contextmanager
def disk_errors(target: Path) -> Iterator[None]:
    """Translate errors of the file system to `PreflightError`; on a full disk, delete the partial file."""
    try:
        yield
    except OSError as error:
        # The partial file itself fills the disk: without it, the user can do something about the rest.
        full = error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
        if full:
            target.with_name(target.name + ".partial").unlink(missing_ok=True)
        raise PreflightError(
            f"{target.name} cannot be written to the wheel cache",
            cause=f"{error.strerror or error} at {target.parent}",
            hint="Free some space, or set XDG_CACHE_HOME to a directory on a larger disk"
            if full
            else "Set XDG_CACHE_HOME to a directory that you can write to",
        ) from error
