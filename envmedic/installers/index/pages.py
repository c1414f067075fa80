"""Pages of an index: every file of a project, in one request or from a local directory.

The simple API: https://packaging.python.org/en/latest/specifications/simple-repository-api/
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from html.parser import HTMLParser
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urldefrag, urljoin, urlsplit
from urllib.request import url2pathname

import msgspec

from envmedic import safe_io
from envmedic.errors import NetworkError
from envmedic.installers.index.credentials import without_credentials
from envmedic.model.answers.family import Offered

if TYPE_CHECKING:
    from envmedic.installers.index.http import IndexSession

JSON = "application/vnd.pypi.simple.v1+json"
_HTML = "application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"
_LARGEST = 64 << 20
"""Limit for a page on this machine, in bytes; the largest pages of indexes have some ten millions."""


class _File(msgspec.Struct, rename="kebab"):
    """A file as an index describes it (PyPA specification "Simple repository API", JSON)."""

    url: str
    hashes: dict[str, str] = {}
    size: int | None = None
    requires_python: str | None = None
    upload_time: str | None = None
    yanked: bool | str = False


class _Page(msgspec.Struct):
    files: list[_File] = []


def project_files(session: IndexSession, index: str, name: str) -> tuple[Offered, ...]:
    """Every file of a project on the index; empty if it has none. Raises `NetworkError`."""
    page = f"{index.rstrip('/')}/{name}/"
    if urlsplit(index).scheme == "file":
        return _local(page)
    # JSON first: it has sizes and days, and needs no HTML parser.
    answer = session.request("GET", page, headers={"Accept": f"{JSON}, {_HTML}"}, accept=(200, 404))
    if answer.status == HTTPStatus.NOT_FOUND:
        return ()
    if answer.headers.get("Content-Type", "").startswith(JSON):
        return tuple(from_json(answer.data, page))
    return tuple(from_html(answer.data.decode("utf-8", "replace"), page))


def _local(page: str) -> tuple[Offered, ...]:
    path = Path(url2pathname(urlsplit(page).path), "index.html")
    try:
        text = safe_io.read(path, _LARGEST).decode("utf-8", "replace")
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except OSError as error:
        raise _not_readable(page, error.strerror or str(error)) from error
    return tuple(from_html(text, page))


def from_json(content: bytes, page: str) -> Iterator[Offered]:
    """Yield the files of a page in JSON. Raises `NetworkError` for a page that is none."""
    try:
        files = msgspec.json.decode(content, type=_Page).files
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _not_readable(page, str(error)) from error
    for file in files:
        with suppress(ValueError):  # of an invalid address
            yield offered(
                urljoin(page, file.url),
                file.hashes.get("sha256"),
                file.size,
                requires_python=file.requires_python,
                uploaded=file.upload_time[:10] if file.upload_time else None,
                yanked=file.yanked is not False,
            )


def from_html(text: str, page: str) -> Iterator[Offered]:
    """Yield the files of a page in HTML. Raises `NetworkError` for a page that is none."""
    links = _Links()
    try:
        links.feed(text)
    except AssertionError as error:  # HTMLParser of Python before 3.13 raises this for a malformed declaration
        raise _not_readable(page, str(error)) from error
    # PEP 503 puts the hash into the fragment; hashes other than SHA-256 do not identify a file in a lock.
    for link in links.found:
        bare, _, fragment = str(link["href"]).partition("#")
        sha256 = fragment.removeprefix("sha256=") if fragment.startswith("sha256=") else None
        with suppress(ValueError):
            yield offered(
                urljoin(page, bare),
                sha256,
                None,
                requires_python=link.get("data-requires-python"),
                yanked="data-yanked" in link,
            )


def offered(
    url: str,
    sha256: str | None,
    size: int | None,
    *,
    requires_python: str | None = None,
    uploaded: str | None = None,
    yanked: bool = False,
) -> Offered:
    """The file at `url`, whose credentials, query and fragment are left out. Raises ValueError for no URL."""
    bare = without_credentials(urldefrag(url).url).partition("?")[0]
    return Offered(
        filename=unquote(urlsplit(bare).path).rpartition("/")[2],
        url=bare,
        sha256=sha256,
        size_bytes=size,
        requires_python=requires_python or None,
        uploaded=uploaded,
        yanked=yanked,
    )


def _not_readable(page: str, cause: str) -> NetworkError:
    hint = "Ask whoever runs the index, or try again"
    return NetworkError(f"{without_credentials(page)} is not readable", cause=cause, hint=hint)


class _Links(HTMLParser):
    """Collects the attributes of links."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[dict[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """A start tag, by `HTMLParser`."""
        here = dict(attrs)
        if tag == "a" and here.get("href"):
            self.found.append(here)
