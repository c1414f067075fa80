"""Channels behind a server: logins and tokens, what is kept for offline work, and what is refused."""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import msgspec
import pytest

from envmedic.errors import IntegrityError, Interrupted, NetworkError
from envmedic.installers.conda.configuration import configuration
from envmedic.installers.conda.install import package_cache
from envmedic.model.conda import CondaChange
from envmedic.model.events import EventData
from tests.conda.changes import Case, carried_out, enter
from tests.conda.channel import noarch
from tests.conda.room import Room
from tests.gallery.repair_gallery.conda.package import write_channel

pytestmark = pytest.mark.long

SECRET = "s3cr3t-Wort"


class Stall:
    """A file that is asked for in vain, until it is let go."""

    def __init__(self, filename: str) -> None:
        self.filename = filename
        self.asked = threading.Event()
        self.over = threading.Event()


class Guarded(SimpleHTTPRequestHandler):
    """Files for those who have the login, or ``/t/TOKEN`` before the path."""

    stall: ClassVar[Stall | None] = None

    def do_GET(self) -> None:
        self._answer(super().do_GET)

    def do_HEAD(self) -> None:
        self._answer(super().do_HEAD)

    def _answer(self, give) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
        login = base64.b64encode(f"me:{SECRET}".encode()).decode()
        token = f"/t/{SECRET}"
        if self.path.startswith(token):
            self.path = self.path.removeprefix(token)
        elif self.headers.get("Authorization") != f"Basic {login}":
            self.send_error(401)
            return
        if self.stall is not None and self.path.endswith(self.stall.filename):
            self.stall.asked.set()
            self.stall.over.wait()
        give()

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Path, ThreadingHTTPServer]]:
    """A directory with a channel ``mine``, and its server."""
    root = tmp_path / "www"
    write_channel(root / "mine", [noarch("filelock", "42.0")])
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Guarded, directory=str(root)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield root, server
    server.shutdown()
    thread.join()
    server.server_close()


def configured(room: Room, url: str, *, alias: str = "") -> None:
    channels = "".join(f"  - {item}\n" for item in (url, *room.channels))
    room.condarc.write_text(f"channels:\n{channels}" + (f"channel_alias: {alias}\n" if alias else ""))


def traces(root: Path) -> list[str]:
    """Files that hold the secret, the user's own configuration apart."""
    files = (path for path in root.rglob("*") if path.is_file() and not path.is_symlink() and path.name != "condarc")
    return [str(path) for path in files if SECRET.encode() in path.read_bytes()]


@pytest.mark.parametrize("how", ["login", "token"])
def test_credentials_open_a_channel_and_are_written_nowhere(
    old: Room, served: tuple[Path, ThreadingHTTPServer], how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    enter(old, monkeypatch)
    port = served[1].server_port
    if how == "login":
        configured(old, f"http://me:{SECRET}@127.0.0.1:{port}/mine")
    else:
        configured(old, "mine", alias=f"http://127.0.0.1:{port}/t/{SECRET}")
    prefix = old.by_rattler("env", ["python=3.11", "filelock=3.15.4"])
    case = Case(old, prefix)
    change = case.resolve("filelock=42")
    assert [item.url for item in change.install] == [
        f"http://127.0.0.1:{port}/mine/noarch/filelock-42.0-pyhd8ed1ab_0.conda"
    ]
    record = carried_out(case.apply(change, check="import filelock; assert filelock.__version__ == '42.0'"))
    for text in (msgspec.json.encode(change), msgspec.json.encode(record), repr(case.events).encode()):
        assert SECRET.encode() not in text
    assert traces(old.root) == []


def test_without_a_login_the_refusal_says_what_to_do(
    old: Room, served: tuple[Path, ThreadingHTTPServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    enter(old, monkeypatch)
    configured(old, f"http://127.0.0.1:{served[1].server_port}/mine")
    prefix = old.by_rattler("env", ["python=3.11", "filelock=3.15.4"])
    with pytest.raises(NetworkError) as refusal:
        Case(old, prefix).resolve("filelock=42")
    assert "login or token" in (refusal.value.hint or "")


def test_what_was_read_once_does_offline(
    old: Room, served: tuple[Path, ThreadingHTTPServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    enter(old, monkeypatch)
    root, server = served
    configured(old, f"http://me:{SECRET}@127.0.0.1:{server.server_port}/mine")
    prefix = old.by_rattler("env", ["python=3.11", "filelock=3.15.4"])
    case = Case(old, prefix)
    with pytest.raises(NetworkError, match="cannot be read"):
        case.resolve("filelock=42", offline=True)
    online = case.resolve("filelock=42")
    server.shutdown()
    server.server_close()
    change = case.resolve("filelock=42", offline=True)
    assert change == online
    with pytest.raises(NetworkError, match="--offline forbids to download it"):
        case.side.fetch(change, offline=True, emit=case.events.append)
    with pytest.raises(NetworkError):
        case.side.fetch(change, offline=False, emit=case.events.append)
    kept = old.root / "pkgs"
    kept.mkdir()
    archive = root / "mine" / "noarch" / change.install[0].filename
    (kept / archive.name).write_bytes(archive.read_bytes())
    assert not case.side.is_fetched(change.install[0])
    case.side.fetch(change, offline=True, emit=case.events.append)
    assert case.side.is_fetched(change.install[0])
    carried_out(case.apply(change))


def test_another_content_than_announced_is_refused(
    old: Room, served: tuple[Path, ThreadingHTTPServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    enter(old, monkeypatch)
    root, server = served
    configured(old, f"http://me:{SECRET}@127.0.0.1:{server.server_port}/mine")
    prefix = old.by_rattler("env", ["python=3.11", "filelock=3.15.4"])
    case = Case(old, prefix)
    change = case.resolve("filelock=42")
    archive = root / "mine" / "noarch" / change.install[0].filename
    archive.write_bytes(archive.read_bytes() + b"more")
    with pytest.raises(IntegrityError, match="another hash than announced"):
        case.side.fetch(change, offline=False, emit=case.events.append)
    assert not package_cache.path_of(change.install[0]).exists()
    assert list(package_cache.path_of(change.install[0]).parent.iterdir()) == []


def test_a_package_that_does_not_come_is_given_up_at_once(
    old: Room, served: tuple[Path, ThreadingHTTPServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    enter(old, monkeypatch)
    _, server = served
    configured(old, f"http://me:{SECRET}@127.0.0.1:{server.server_port}/mine")
    prefix = old.by_rattler("env", ["python=3.11", "filelock=3.15.4"])
    case = Case(old, prefix)
    change = case.resolve("filelock=42")
    stall = Stall(change.install[0].filename)
    monkeypatch.setattr(Guarded, "stall", stall)

    def cancel(_data: EventData) -> None:
        if stall.asked.is_set():
            raise Interrupted("Cancelled")

    try:
        with pytest.raises(Interrupted):
            case.side.fetch(change, offline=False, emit=cancel)
    finally:
        stall.over.set()
    assert not package_cache.path_of(change.install[0]).exists()
    monkeypatch.setattr(Guarded, "stall", None)
    case.side.fetch(change, offline=False, emit=case.events.append)
    assert case.side.is_fetched(change.install[0])


def test_a_local_package_that_is_gone_or_another_is_told_apart(
    old: Room, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    enter(old, monkeypatch)
    url = write_channel(tmp_path / "local", [noarch("filelock", "42.0")])
    prefix = old.by_rattler("env", ["python=3.11", "filelock=3.15.4"])
    case = Case(old, prefix)
    change: CondaChange = case.resolve("filelock=42", channels=(url,))
    archive = tmp_path / "local" / "noarch" / change.install[0].filename
    whole = archive.read_bytes()
    archive.write_bytes(whole[:-1])
    with pytest.raises(IntegrityError):
        case.side.fetch(change, offline=False, emit=case.events.append)
    archive.unlink()
    with pytest.raises(NetworkError, match="is not there any more"):
        case.side.fetch(change, offline=False, emit=case.events.append)


def test_channels_that_only_packages_came_from_are_asked_after_those_of_the_user(
    old: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that a command line named come first, as conda had it then."""
    enter(old, monkeypatch)
    prefix = old.by_rattler("env", ["python=3.11", "pytorch=2.3", "pytorch-cuda=12.1"])
    pytorch, nvidia, main = old.channels
    old.condarc.write_text(f"channels: [{main}]\n")
    packages = Case(old, prefix).environment().conda
    assert packages is not None
    found = configuration.read(prefix, packages.packages)
    assert [(item.urls, item.optional) for item in found.sources] == [
        ((main,), False), ((pytorch,), True), ((nvidia,), True),
    ]  # fmt: skip
    (prefix / "conda-meta" / "history").write_text(
        f"==> 2024-05-01 12:00:00 <==\n# cmd: conda create -n env -c {nvidia} --channel={pytorch} pytorch\n"
    )
    found = configuration.read(prefix, packages.packages)
    assert [item.urls for item in found.sources] == [(nvidia,), (pytorch,), (main,)]
    old.condarc.write_text("{}\n")
    found = configuration.read(prefix, packages.packages)
    assert [item.urls for item in found.sources] == [(nvidia,), (pytorch,), (main,)]  # and never Anaconda's
