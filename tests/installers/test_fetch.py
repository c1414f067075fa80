"""Wheels in the cache: complete and verified, or not there at all."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from urllib3 import PoolManager, Timeout

from envmedic.errors import IntegrityError, Interrupted, NetworkError, PreflightError
from envmedic.installers.index import configuration
from envmedic.installers.index import http as session
from envmedic.installers.index.proxies import proxy_of
from envmedic.installers.uv import UvInstaller
from envmedic.installers.wheels import torch_wheel
from envmedic.installers.wheels.fetch import disk_errors, fetch
from envmedic.model.answers.family import Offered
from envmedic.model.events import EventData, Notice, Progress, distinct
from envmedic.model.plan import Artifact
from tests.installers.observed import artifact
from tests.support.index import Fault, IndexServer, serve, write_index
from tests.support.wheels import Wheel, make_wheel

BIG = {"app/data.bin": os.urandom(300_000)}
QUICK = session.Patience(attempts=3, first_pause_s=0.01, connect_s=2, read_s=1)


@pytest.fixture
def wheel(tmp_path: Path) -> Wheel:
    """A wheel that takes several reads."""
    return make_wheel(tmp_path / "w", "app", "1.0", files=BIG)


@pytest.fixture
def remote(wheel: Wheel, index_server: IndexServer) -> Artifact:
    """The wheel on the server."""
    write_index(index_server.root, [wheel])
    return artifact(wheel, f"{index_server.host}/files/{wheel.path.name}")


def get(*artifacts: Artifact, offline: bool = False, emit: Callable[[EventData], None] = lambda _: None) -> None:
    """Fetch with little patience."""
    with session.opened(configuration.read(None), QUICK) as http:
        fetch(artifacts, offline=offline, emit=emit, session=http)


def left(item: Artifact) -> list[str]:
    """What lies in the wheel's cache directory besides its lock."""
    folder = Path(item.local_path).parent
    return sorted(path.name for path in folder.iterdir() if path.name != ".lock") if folder.exists() else []


def test_a_download_is_complete_and_alone_in_its_directory(remote: Artifact, wheel: Wheel) -> None:
    get(remote)
    assert Path(remote.local_path).read_bytes() == wheel.path.read_bytes()
    assert left(remote) == [remote.filename]


def test_a_cached_wheel_is_not_downloaded_again(remote: Artifact, index_server: IndexServer) -> None:
    get(remote)
    index_server.seen.clear()
    get(remote)
    assert index_server.seen == []


def test_a_damaged_cached_wheel_is_replaced_and_said(remote: Artifact, wheel: Wheel) -> None:
    get(remote)
    Path(remote.local_path).write_bytes(wheel.path.read_bytes()[:-1])
    events: list[EventData] = []
    get(remote, emit=events.append)
    assert Path(remote.local_path).read_bytes() == wheel.path.read_bytes()
    assert [event.code for event in events if isinstance(event, Notice)] == ["damaged-cache"]


def test_progress_counts_the_bytes_of_all_wheels(remote: Artifact, tmp_path: Path) -> None:
    other = make_wheel(tmp_path / "w", "other", "2.0")
    events: list[EventData] = []
    get(remote, artifact(other), emit=events.append)
    progress = [event for event in events if isinstance(event, Progress)]
    total = (remote.size_bytes or 0) + other.size
    assert {event.total for event in progress} == {total}
    assert progress[-1].done == total
    assert [event.done for event in progress] == sorted(event.done for event in progress)


def test_a_broken_connection_is_continued_where_it_broke(
    remote: Artifact, wheel: Wheel, index_server: IndexServer
) -> None:
    index_server.faults = [Fault(r"\.whl$", cut_after=100_000, times=2)]
    get(remote)
    assert Path(remote.local_path).read_bytes() == wheel.path.read_bytes()
    assert [item.range for item in index_server.requests_for(".whl")] == [None, "bytes=65536-", "bytes=131072-"]


def test_a_server_without_ranges_is_read_again_from_the_start(
    remote: Artifact, wheel: Wheel, index_server: IndexServer
) -> None:
    index_server.ranges = False
    index_server.faults = [Fault(r"\.whl$", cut_after=100_000, times=1)]
    get(remote)
    assert Path(remote.local_path).read_bytes() == wheel.path.read_bytes()


def test_a_server_that_fails_for_a_while_is_asked_again(remote: Artifact, index_server: IndexServer) -> None:
    index_server.faults = [Fault(r"\.whl$", status=503, times=2)]
    get(remote)
    assert left(remote) == [remote.filename]


@pytest.mark.parametrize(
    ("fault", "cause"),
    [
        (Fault(r"\.whl$", status=500), "the server answered 500"),
        (Fault(r"\.whl$", status=404), "the server answered 404"),
        (Fault(r"\.whl$", status=401), "needs a login (401 Unauthorized)"),
        (Fault(r"\.whl$", status=403), "refuses access (403 Forbidden)"),
        (Fault(r"\.whl$", hang=True), "it did not answer in time"),
        (Fault(r"\.whl$", cut_after=0), "the connection broke off in the middle of an answer, repeatedly"),
    ],
    ids=["500", "404", "401", "403", "hang", "cut"],
)
def test_a_server_that_does_not_give_it(
    fault: Fault, cause: str, remote: Artifact, index_server: IndexServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{__name__}.QUICK", session.Patience(attempts=2, first_pause_s=0.01, read_s=0.2))
    index_server.faults = [fault]
    with pytest.raises(NetworkError) as raised:
        get(remote)
    assert raised.value.cause == cause
    assert raised.value.hint
    assert remote.filename not in left(remote)


def test_patience_with_a_connection_is_not_that_with_an_answer(
    remote: Artifact, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Timeout] = []
    send = PoolManager.urlopen

    def noted(pool: PoolManager, method: str, url: str, **more: Any) -> Any:
        asked.append(more["timeout"])
        return send(pool, method, url, **more)

    monkeypatch.setattr(PoolManager, "urlopen", noted)
    get(remote)
    assert {(item.connect_timeout, item.read_timeout) for item in asked} == {(QUICK.connect_s, QUICK.read_s)}


def test_a_closed_port(wheel: Wheel) -> None:
    with pytest.raises(NetworkError, match=r"http://127\.0\.0\.1:9 cannot be reached") as raised:
        get(artifact(wheel, f"http://127.0.0.1:9/{wheel.path.name}"))
    assert "Connection refused" in str(raised.value.cause)
    assert "object at 0x" not in str(raised.value.cause)


def test_a_host_name_that_does_not_resolve(wheel: Wheel) -> None:
    with pytest.raises(NetworkError) as raised:
        get(artifact(wheel, f"http://no-such-host.invalid/{wheel.path.name}"))
    assert raised.value.cause == "its host name does not resolve"


def test_an_unknown_certificate(remote: Artifact, index_server: IndexServer) -> None:
    index_server.secure()
    with pytest.raises(NetworkError) as raised:
        get(msgspec.structs.replace(remote, url=remote.url.replace("http:", "https:")))
    assert raised.value.cause == "its TLS certificate is not accepted"


def test_a_trusted_host_needs_no_certificate(
    remote: Artifact, index_server: IndexServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    index_server.secure()
    monkeypatch.setenv("PIP_TRUSTED_HOST", "127.0.0.1")
    get(msgspec.structs.replace(remote, url=remote.url.replace("http:", "https:")))
    assert left(remote) == [remote.filename]


def test_other_content_than_announced_leaves_nothing_behind(
    remote: Artifact, wheel: Wheel, index_server: IndexServer
) -> None:
    index_server.faults = [Fault(r"\.whl$", body=bytes(wheel.size))]
    with pytest.raises(IntegrityError) as raised:
        get(remote)
    assert remote.sha256 in str(raised.value.cause)
    assert left(remote) == []


def test_a_file_that_is_no_zip_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "app-1.0-py3-none-any.whl"
    path.write_bytes(b"<html>Sign in</html>")
    item = artifact(wheel_of(path))
    with pytest.raises(IntegrityError, match="is not a valid wheel") as raised:
        get(item)
    assert raised.value.cause == "File is not a zip file"
    assert left(item) == []


@pytest.mark.parametrize(
    ("without", "metadata", "cause"),
    [
        (("METADATA",), None, "it has no *.dist-info/METADATA"),
        ((), "Metadata-Version: 2.1\nName: other\nVersion: 1.0\n", "its metadata says other 1.0, not app 1.0"),
    ],
    ids=["no metadata", "another name"],
)
def test_a_zip_that_is_not_this_wheel(
    without: tuple[str, ...], metadata: str | None, cause: str, tmp_path: Path
) -> None:
    item = artifact(make_wheel(tmp_path / "w", "app", "1.0", without=without, metadata=metadata))
    with pytest.raises(IntegrityError) as raised:
        get(item)
    assert raised.value.cause == cause
    assert left(item) == []


def wheel_of(path: Path) -> Wheel:
    """A file as if it were a wheel."""
    from envmedic.installers.wheels.wheel_files import sha256_of

    return Wheel(name="app", version="1.0", path=path, sha256=sha256_of(path), size=path.stat().st_size, metadata="")


def test_a_wrong_size_is_refused(remote: Artifact) -> None:
    with pytest.raises(IntegrityError, match="another size than announced"):
        get(msgspec.structs.replace(remote, size_bytes=(remote.size_bytes or 0) + 1))
    assert left(remote) == []


def test_a_local_wheel_is_copied_offline(wheel: Wheel) -> None:
    item = artifact(wheel)
    get(item, offline=True)
    assert Path(item.local_path).read_bytes() == wheel.path.read_bytes()
    assert not Path(item.local_path).samefile(wheel.path)


def test_a_local_wheel_that_is_gone(wheel: Wheel) -> None:
    item = artifact(wheel)
    wheel.path.unlink()
    with pytest.raises(NetworkError, match="cannot be read") as raised:
        get(item)
    assert raised.value.cause == "No such file or directory"
    assert left(item) == []


def test_offline_and_absent(remote: Artifact, index_server: IndexServer) -> None:
    with pytest.raises(NetworkError, match="--offline forbids") as raised:
        get(remote, offline=True)
    assert raised.value.hint == "Run once without --offline, or give a directory that holds it with --find-links"
    assert index_server.seen == []


def test_an_interrupted_download_is_taken_up_by_the_next_run(
    remote: Artifact, wheel: Wheel, index_server: IndexServer
) -> None:
    index_server.faults.append(Fault("whl$", stall_after=200_000, times=1))

    def interrupt(event: EventData) -> None:
        if isinstance(event, Progress) and event.done > 100_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        get(remote, emit=interrupt)
    assert left(remote) == [f"{remote.filename}.partial"]
    get(remote)
    assert Path(remote.local_path).read_bytes() == wheel.path.read_bytes()
    assert left(remote) == [remote.filename]
    ranges = [item.range for item in index_server.requests_for(".whl")]
    assert ranges[0] is None
    assert str(ranges[1]).startswith("bytes=")


@pytest.mark.parametrize(
    "fault", [Fault("whl$", hang=True), Fault("whl$", stall_after=200_000)], ids=["answer", "body"]
)
def test_a_download_that_stalls_is_left_at_once_and_taken_up_later(
    fault: Fault, remote: Artifact, wheel: Wheel, index_server: IndexServer
) -> None:
    index_server.faults.append(fault)
    wanted = 0 if fault.hang else 100_000

    def cancel(data: EventData) -> None:
        if isinstance(data, Progress) and data.done >= wanted and index_server.requests_for(remote.filename):
            raise Interrupted("Cancelled")

    with session.opened(configuration.read(None), session.Patience(read_s=300)) as http, pytest.raises(Interrupted):
        fetch([remote], offline=False, emit=cancel, session=http)
    kept = Path(f"{remote.local_path}.partial")
    size = kept.stat().st_size if kept.exists() else 0
    assert wanted <= size <= 200_000
    index_server.faults.clear()
    get(remote)
    assert Path(remote.local_path).read_bytes() == wheel.path.read_bytes()
    assert index_server.requests_for(remote.filename)[-1].range == (f"bytes={size}-" if size else None)


def test_what_stalls_tells_that_it_goes_on(remote: Artifact, index_server: IndexServer) -> None:
    index_server.faults.append(Fault("whl$", stall_after=100_000))
    told: list[EventData] = []

    def emit(data: EventData) -> None:
        told.append(data)
        if told.count(data) > 2:
            raise Interrupted("Cancelled")

    with session.opened(configuration.read(None), session.Patience(read_s=300)) as http, pytest.raises(Interrupted):
        fetch([remote], offline=False, emit=emit, session=http)
    heard: list[EventData] = []
    once = distinct(heard.append)
    for data in told:
        once(data)
    assert len(told) == len(heard) + 2


def test_a_partial_file_of_something_else_is_thrown_away(remote: Artifact, wheel: Wheel) -> None:
    target = Path(remote.local_path)
    target.parent.mkdir(parents=True)
    target.with_name(f"{target.name}.partial").write_bytes(b"rubbish" * 1000)
    get(remote)
    assert target.read_bytes() == wheel.path.read_bytes()


def test_a_partial_file_that_is_too_long_is_thrown_away(remote: Artifact, wheel: Wheel) -> None:
    target = Path(remote.local_path)
    target.parent.mkdir(parents=True)
    target.with_name(f"{target.name}.partial").write_bytes(bytes(wheel.size + 5))
    get(remote)
    assert target.read_bytes() == wheel.path.read_bytes()


SCRIPT = """
import sys
import msgspec
from envmedic.installers.uv import UvInstaller
from envmedic.model.plan import Artifact
item = msgspec.json.decode(sys.stdin.buffer.read(), type=Artifact)
UvInstaller().fetch([item], offline=False, emit=lambda event: None)
"""


def test_two_processes_that_want_the_same_wheel_download_it_once(
    remote: Artifact, wheel: Wheel, index_server: IndexServer
) -> None:
    document = msgspec.json.encode(remote)
    processes = [
        subprocess.Popen([sys.executable, "-c", SCRIPT], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(3)
    ]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write(document)
        process.stdin.close()
    for process in processes:
        with process:
            assert process.stderr is not None
            assert process.stderr.read() == b""
        assert process.returncode == 0
    assert Path(remote.local_path).read_bytes() == wheel.path.read_bytes()
    assert len(index_server.requests_for(".whl")) == 1


def test_credentials_of_the_configured_index_are_used_and_not_shown(
    venv: Path, wheel: Wheel, index_server: IndexServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    from envmedic.model.ports import ResolveRequest
    from tests.installers.observed import environment

    write_index(index_server.root, [wheel])
    index_server.credentials = ("someone", "p@ss:w/rd")
    monkeypatch.setenv("PIP_INDEX_URL", index_server.url_with_credentials)
    resolution = UvInstaller().resolve(ResolveRequest(pins=("app==1.0",)), environment(venv), lambda _: None)
    assert "someone" not in str(resolution)
    assert "rd" not in resolution.artifacts[0].url.partition("/files/")[0]
    UvInstaller().fetch(resolution.artifacts, offline=False, emit=lambda _: None)
    assert Path(resolution.artifacts[0].local_path).is_file()


def test_netrc_logs_in(remote: Artifact, index_server: IndexServer, quick: Path) -> None:
    index_server.credentials = ("someone", "secret")
    netrc = quick / ".netrc"
    netrc.write_text("machine 127.0.0.1 login someone password secret\n", encoding="utf-8")
    netrc.chmod(0o600)
    get(remote)
    assert left(remote) == [remote.filename]


def test_a_proxy_of_pip_is_used(remote: Artifact, index_server: IndexServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_PROXY", index_server.host)
    elsewhere = remote.url.replace(index_server.host, "http://wheels.invalid")
    get(msgspec.structs.replace(remote, url=elsewhere))
    assert left(remote) == [remote.filename]


def test_no_space_is_said_before_the_download(remote: Artifact, index_server: IndexServer) -> None:
    with pytest.raises(PreflightError, match="No space for") as raised:
        get(msgspec.structs.replace(remote, size_bytes=1 << 60))
    assert "XDG_CACHE_HOME" in str(raised.value.hint)
    assert index_server.seen == []


def test_a_disk_that_fills_up_on_the_way_loses_the_partial_file(tmp_path: Path) -> None:
    target = tmp_path / "app-1.0-py3-none-any.whl"
    partial = target.with_name(f"{target.name}.partial")
    partial.write_bytes(b"some")
    with pytest.raises(PreflightError) as raised, disk_errors(target):
        Path("/dev/full").write_bytes(b"x")
    assert os.strerror(errno.ENOSPC) in str(raised.value.cause)
    assert not partial.exists()


def test_a_cache_that_cannot_be_written(wheel: Wheel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(PreflightError) as raised:
        get(artifact(wheel))
    assert raised.value.hint == "Set XDG_CACHE_HOME to a directory that you can write to"


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, None),
        ({"HTTPS_PROXY": "http://me:pw@proxy:3128"}, "http://me:pw@proxy:3128"),
        ({"OF_PIP": "yes"}, "http://of-pip:1"),
        ({"https_proxy": "proxy:3128", "OF_PIP": "yes"}, "http://proxy:3128"),
        ({"ALL_PROXY": "http://all:1"}, "http://all:1"),
        ({"HTTP_PROXY": "http://plain:1"}, None),
        ({"HTTPS_PROXY": "http://proxy:1", "NO_PROXY": "localhost, .example"}, None),
        ({"HTTPS_PROXY": "http://proxy:1", "NO_PROXY": "elsewhere.example"}, "http://proxy:1"),
    ],
)
def test_the_proxy_of_an_index(
    variables: dict[str, str], expected: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert proxy_of("https://wheels.example:8443/simple", "of-pip:1" if "OF_PIP" in variables else None) == expected


def test_a_network_without_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:1")
    monkeypatch.setenv("NO_PROXY", "10.0.0.0/8")
    assert proxy_of("https://10.1.2.3:8443/simple", None) is None
    assert proxy_of("https://11.1.2.3:8443/simple", None) == "http://proxy:1"


def test_a_login_is_told_to_its_own_host_alone(
    remote: Artifact, wheel: Wheel, index_server: IndexServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not to the store that the index sends its users to."""
    index_server.credentials = ("someone", "secret")
    monkeypatch.setenv("PIP_INDEX_URL", index_server.url_with_credentials)
    with serve(index_server.root) as store:
        index_server.faults = [Fault(r"\.whl$", location=f"{store.host}/files/{wheel.path.name}")]
        get(remote)
        assert [item.authorization for item in store.seen] == [None]
    assert Path(remote.local_path).read_bytes() == wheel.path.read_bytes()
    assert all(item.authorization for item in index_server.seen)


@pytest.mark.parametrize(
    ("location", "cause"),
    [("/files/app.whl", "the server answered 302"), ("http://[", "the server answered 302"), ("file:///x", "No host")],
    ids=["in circles", "no address", "this machine"],
)
def test_a_server_that_leads_nowhere(location: str, cause: str, remote: Artifact, index_server: IndexServer) -> None:
    index_server.faults = [Fault(r"\.whl$", location=location)]
    with pytest.raises(NetworkError) as raised:
        get(remote)
    assert cause in str(raised.value.cause)


def test_a_connection_that_breaks_off_is_no_damaged_wheel(remote: Artifact, index_server: IndexServer) -> None:
    index_server.faults = [Fault(r"\.whl$", cut_after=10)]
    file = Offered(filename=remote.filename, url=remote.url, size_bytes=remote.size_bytes)
    with (
        session.opened(configuration.read(None), QUICK) as http,
        pytest.raises(NetworkError, match="cannot be reached"),
    ):
        torch_wheel.read(file, http)
