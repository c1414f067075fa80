"""Size and requirements of a wheel on a server, without a full download.

PEP 658 offers the metadata as a file beside the wheel; without it, range requests read the end of the zip. A server
that offers neither leaves the requirements unknown until the download.
"""

from __future__ import annotations

import io
import zipfile
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import url2pathname

from envmedic.installers.wheels import wheel_files

if TYPE_CHECKING:
    from envmedic.installers.index.http import IndexSession

BLOCK = 64 * 1024
"""Bytes of one range request: a wheel's central directory and METADATA usually fit."""


@dataclass(frozen=True)
class WheelFacts:
    """Facts about a wheel before its download."""

    size_bytes: int | None = None
    requires: tuple[str, ...] | None = None
    """None when unknown."""


def local_file(url: str) -> Path | None:
    """The path of a ``file://`` URL, None for any other."""
    parts = urlsplit(url)
    return Path(url2pathname(parts.path)) if parts.scheme == "file" else None


def read_facts(url: str, session: IndexSession) -> WheelFacts:
    """Size and requirements of the wheel at `url`. Raises what `Session` raises when it is unreachable."""
    path = local_file(url)
    if path is not None:
        return WheelFacts(size_bytes=path.stat().st_size, requires=wheel_files.requires(path))
    head = session.request("HEAD", url)
    size = int(head.headers["Content-Length"]) if "Content-Length" in head.headers else None
    return WheelFacts(size_bytes=size, requires=_remote_requires(url, size, session))


def _remote_requires(url: str, size: int | None, session: IndexSession) -> tuple[str, ...] | None:
    # Asked for without a look at the index page, which would announce it: one request less. Some stores (S3) answer
    # 403 for a file that does not exist.
    answer = session.request("GET", url + ".metadata", accept=(200, 403, 404))
    if answer.status == HTTPStatus.OK:
        return wheel_files.requirements(answer.data.decode("utf-8", "replace"))
    if size is None:
        return None
    try:
        # The buffer turns the many small reads of zipfile into few requests.
        with io.BufferedReader(RangeFile(url, size, session), BLOCK) as file:
            return wheel_files.requirements(wheel_files.metadata_in(file))
    except (NoRanges, ValueError, zipfile.BadZipFile):
        return None  # not an error yet: the download verifies the wheel and reports the fault


class NoRanges(Exception):
    """The server does not answer range requests."""


class RangeFile(io.RawIOBase):
    """A remote file with random access by range requests, as zipfile needs it."""

    def __init__(self, url: str, size: int, session: IndexSession) -> None:
        super().__init__()
        self._url, self._size, self._session = url, size, session
        self._position = 0

    def readable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Always."""
        return True

    def tell(self) -> int:
        """Offset of the next byte read."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Set the offset; zipfile seeks from the end first."""
        # zipfile looks for the end record at offsets before the start of a file that is too small: clamped, it finds
        # none.
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = max(0, base + offset)
        return self._position

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]  # narrower than WriteableBuffer
        """Fill `buffer` from the current offset. Raises `NoRanges` when the server sends the whole file."""
        if self._position >= self._size or not len(buffer):
            return 0
        last = min(self._position + len(buffer), self._size) - 1
        content = self._fetch(self._position, last)
        buffer[: len(content)] = content
        self._position += len(content)
        return len(content)

    def _fetch(self, first: int, last: int) -> bytes:
        # stream: a server without ranges would send all of a wheel of gigabytes before its status is looked at.
        headers = {"Range": f"bytes={first}-{last}"}
        with self._session.streamed(self._url, headers=headers, accept=(206, 200)) as answer:
            if answer.status != HTTPStatus.PARTIAL_CONTENT:
                raise NoRanges(self._url)
            return answer.data
