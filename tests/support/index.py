"""Package indexes for tests: a directory of static pages, and a loopback server that can misbehave.

The pages follow PEP 503 (HTML), with hashes, `data-requires-python` and PEP 658 metadata files.
"""

from __future__ import annotations

import base64
import html
import re
import ssl
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from urllib.parse import quote, unquote, urlsplit

from tests.support.wheels import Wheel

CERTIFICATE = Path(__file__).with_name("loopback-authority.pem")
"""Of an authority that nobody knows, which signed `loopback.pem` for 127.0.0.1."""


def normalise(name: str) -> str:
    """Name as PEP 503 wants it in URLs."""
    return re.sub(r"[-_.]+", "-", name).lower()


def write_index(directory: Path, wheels: Sequence[Wheel], *, hashes: bool = True, metadata: bool = True) -> str:
    """Write a simple index of `wheels` and return its ``file://`` URL.

    Pages link relatively to the wheels, which must lie in `directory` or be copied to
    ``directory/files``. `hashes` and `metadata` leave the hash fragments or PEP 658 files out.
    """
    files = directory / "files"
    files.mkdir(parents=True, exist_ok=True)
    by_name: dict[str, list[str]] = {}
    for wheel in wheels:
        target = files / wheel.path.name
        if not target.exists():
            target.write_bytes(wheel.path.read_bytes())
        if metadata:
            (files / f"{wheel.path.name}.metadata").write_text(wheel.metadata, encoding="utf-8")
        by_name.setdefault(normalise(wheel.name), []).append(_anchor(wheel, hashes=hashes, metadata=metadata))
    for name, anchors in by_name.items():
        _page(directory / "simple" / name / "index.html", anchors)
    _page(directory / "simple" / "index.html", [f'<a href="{name}/index.html">{name}</a>' for name in sorted(by_name)])
    return (directory / "simple").as_uri()


def _anchor(wheel: Wheel, *, hashes: bool, metadata: bool) -> str:
    href = f"../../files/{quote(wheel.path.name)}" + (f"#sha256={wheel.sha256}" if hashes else "")
    requires = re.search(r"^Requires-Python: (.*)$", wheel.metadata, re.MULTILINE)
    extra = f' data-requires-python="{html.escape(requires[1])}"' if requires else ""
    extra += ' data-core-metadata="true" data-dist-info-metadata="true"' if metadata else ""
    return f'<a href="{href}"{extra}>{wheel.path.name}</a>'


def _page(path: Path, anchors: Sequence[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    body = "<br>\n".join(anchors)
    path.write_text(f"<!DOCTYPE html>\n<html><body>\n{body}\n</body></html>\n", encoding="utf-8")


@dataclass
class Fault:
    """How the server answers requests whose path matches `pattern`, `times` times (-1: always)."""

    pattern: str
    status: int | None = None
    cut_after: int | None = None
    """Send only this many bytes of the body, then close the connection."""
    stall_after: int | None = None
    """Send only this many bytes of the body, then nothing until the server stops."""
    hang: bool = False
    """Answer nothing until the server stops."""
    body: bytes | None = None
    """Send this instead of the file."""
    location: str | None = None
    """Redirect to this path or URL."""
    times: int = -1
    method: str = ""
    """Of the requests that are meant; empty for all. A HEAD would use up what is there for the GET that follows it."""

    def take(self, path: str, method: str) -> bool:
        """Whether this fault applies to such a request for `path` now; counts it down."""
        if self.times == 0 or self.method not in {"", method} or not re.search(self.pattern, path):
            return False
        self.times -= 1 if self.times > 0 else 0
        return True


@dataclass
class Seen:
    """One request that the server got."""

    method: str
    path: str
    range: str | None
    authorization: str | None


@dataclass
class IndexServer:
    """A loopback HTTP server over a directory written by `write_index`."""

    root: Path
    faults: list[Fault] = field(default_factory=list)
    credentials: tuple[str, str] | None = None
    """User and password that every request must carry."""
    ranges: bool = True
    """Whether Range requests are honoured."""
    seen: list[Seen] = field(default_factory=list)
    stopping: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        handler = type("Handler", (_Handler,), {"index": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    def secure(self) -> None:
        """Speak TLS from the next connection on, with a certificate that only `CERTIFICATE` vouches for."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(CERTIFICATE.with_name("loopback.pem"))
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)

    @property
    def port(self) -> int:
        """Port that it listens on."""
        return int(self._server.server_address[1])

    @property
    def host(self) -> str:
        """``http://127.0.0.1:port``."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        """URL of the simple index."""
        return f"{self.host}/simple"

    @property
    def url_with_credentials(self) -> str:
        """The same with user and password in it."""
        user, password = self.credentials or ("", "")
        return f"http://{quote(user, safe='')}:{quote(password, safe='')}@127.0.0.1:{self.port}/simple"

    def requests_for(self, suffix: str, method: str = "GET") -> list[Seen]:
        """Requests whose path ends with `suffix`."""
        return [item for item in self.seen if item.method == method and item.path.endswith(suffix)]

    def __enter__(self) -> IndexServer:  # noqa: PYI034  # typing.Self needs Python 3.11
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stopping.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@contextmanager
def serve(root: Path) -> Iterator[IndexServer]:
    """Serve `root` on the loopback interface while the block runs."""
    with IndexServer(root) as server:
        yield server


class _Handler(BaseHTTPRequestHandler):
    index: IndexServer
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class names it so
        """Keep the test output clean; `IndexServer.seen` has the requests."""

    def do_HEAD(self) -> None:  # the base class names it so
        self._answer(body=False)

    def do_GET(self) -> None:  # the base class names it so
        self._answer(body=True)

    def _answer(self, *, body: bool) -> None:
        path = unquote(urlsplit(self.path).path)
        self.index.seen.append(Seen(self.command, path, self.headers.get("Range"), self.headers.get("Authorization")))
        if not self._authorized():
            self._send(401, b"who are you", body=body, headers={"WWW-Authenticate": 'Basic realm="index"'})
            return
        fault = next((item for item in self.index.faults if item.take(path, self.command)), None)
        if fault is not None and fault.hang:
            self.index.stopping.wait()
            self.close_connection = True
            return
        if fault is not None and fault.location is not None:
            self._send(302, b"elsewhere", body=body, headers={"Location": fault.location})
            return
        if fault is not None and fault.status is not None:
            self._send(fault.status, b"fault", body=body)
            return
        self._send_file(path, body=body, fault=fault)

    def _authorized(self) -> bool:
        if self.index.credentials is None:
            return True
        expected = base64.b64encode(":".join(self.index.credentials).encode()).decode()
        return self.headers.get("Authorization") == f"Basic {expected}"

    def _send_file(self, path: str, *, body: bool, fault: Fault | None) -> None:
        target = self.index.root / path.lstrip("/")
        target = target / "index.html" if target.is_dir() else target
        if not target.is_file():
            self._send(404, b"not found", body=body)
            return
        content = fault.body if fault is not None and fault.body is not None else target.read_bytes()
        start, status, headers = self._range(len(content))
        headers["Content-Type"] = "text/html" if target.suffix == ".html" else "application/octet-stream"
        cut = fault.cut_after if fault is not None else None
        end = int(headers.pop("X-End", len(content)))
        if fault is not None and fault.stall_after is not None:
            cut = fault.stall_after
        self._send(status, content[start:end], body=body, headers=headers, cut=cut)
        if fault is not None and fault.stall_after is not None:
            self.index.stopping.wait()

    def _range(self, size: int) -> tuple[int, int, dict[str, str]]:
        if not self.index.ranges:
            return 0, 200, {}
        match = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range") or "")
        if match is None:
            return 0, 200, {"Accept-Ranges": "bytes"}
        start = int(match[1]) if match[1] else max(0, size - int(match[2]))
        end = int(match[2]) + 1 if match[1] and match[2] else size
        end = min(end, size)
        return start, 206, {"Content-Range": f"bytes {start}-{end - 1}/{size}", "X-End": str(end)}

    def _send(
        self, status: int, content: bytes, *, body: bool, headers: dict[str, str] | None = None, cut: int | None = None
    ) -> None:
        self.send_response(status)
        for key, value in (headers or {}).items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if body:
            self.wfile.write(content if cut is None else content[:cut])
        if cut is not None:
            self.close_connection = True
