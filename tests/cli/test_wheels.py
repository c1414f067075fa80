"""Indexes that cannot be reached and wheels that are not what they should be: told, and nothing is changed."""

from __future__ import annotations

import shutil
import socket
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.support import REPAIR, Done, Shell, failure, state_of, user_of
from tests.envs.nms_cuda.case import REPAIRED, Case
from tests.support.index import IndexServer, serve

WHEEL = f"torchvision-{REPAIRED}-py3-none-any.whl"
QUICK = {"UV_HTTP_RETRIES": "0", "ENVMEDIC_TORCH_INDEX": "http://127.0.0.1:1/{variant}"}


@pytest.fixture
def case(shared: Case, tmp_path: Path) -> Case:
    """The shared environment with an index of its own; no test here changes the environment."""
    index = tmp_path / "index"
    shutil.copytree(shared.wheels.parent / "index", index)
    return replace(shared, index=(index / "simple").as_uri())


@pytest.fixture
def user(case: Case, tmp_path: Path) -> Shell:
    """Somebody whose caches hold nothing yet."""
    return user_of(case, tmp_path / "home")


@pytest.fixture
def server(case: Case, tmp_path: Path) -> Iterator[IndexServer]:
    """The case's index behind HTTP."""
    assert case.index.startswith(tmp_path.as_uri())
    with serve(tmp_path / "index") as server:
        yield server


def repair(user: Shell, case: Case, index: str, *more: str) -> Done:
    """Try to repair, and hold the environment against what it was."""
    before = state_of(case.prefix)
    done = user.having(PIP_INDEX_URL=index, **QUICK).envmedic(*REPAIR, "--json", *more, "-p", str(case.prefix))
    assert state_of(case.prefix) == before
    assert not list(case.prefix.parent.glob(".envmedic/2*")), "a transaction began"
    return done


def closed_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def test_an_index_that_cannot_be_reached(user: Shell, case: Case) -> None:
    done = repair(user, case, f"http://127.0.0.1:{closed_port()}/simple")
    failure(done, code=1, kind="network", says="cannot be reached")
    assert done.document["cause"] == "the connection was refused"


def test_an_index_that_wants_a_login(user: Shell, case: Case, server: IndexServer) -> None:
    server.credentials = ("user", "secret")
    done = repair(user, case, server.url)
    failure(done, code=1, kind="network", says="401 Unauthorized")
    assert "~/.netrc" in done.document["hint"]


def test_a_password_of_an_index_is_never_shown(user: Shell, case: Case, server: IndexServer) -> None:
    server.credentials = ("user", "other")
    done = repair(user, case, f"http://user:s3cret@127.0.0.1:{server.port}/simple")
    assert done.code == 1
    assert "s3cret" not in done.out + done.err


def replaced(path: Path) -> None:
    """Another wheel of the same name: a valid archive with one more file."""
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("extra.py", "")


def test_a_wheel_with_another_hash(user: Shell, case: Case, server: IndexServer) -> None:
    replaced(server.root / "files" / WHEEL)
    done = repair(user, case, server.url)
    failure(done, code=1, kind="integrity", says=WHEEL)
    assert "hash" in (done.document["summary"] + (done.document["cause"] or "")).lower() or "SHA-256" in done.err


@pytest.mark.parametrize(
    ("how", "where"),
    [
        ("no-zip", "index"),
        ("truncated", "index"),
        ("no-zip", "directory"),
        ("truncated", "directory"),
        ("empty", "directory"),
    ],
)
def test_a_damaged_wheel(user: Shell, case: Case, server: IndexServer, how: str, where: str) -> None:
    wheels = user.home / "damaged"
    source = case.wheels / WHEEL
    content = {"no-zip": b"<html>not found</html>", "truncated": source.read_bytes()[:3000], "empty": b""}[how]
    if where == "directory":
        wheels.mkdir()
        (wheels / WHEEL).write_bytes(content)
        done = repair(user, case, server.url, "--offline", "--find-links", str(wheels))
    else:
        (server.root / "files" / WHEEL).write_bytes(content)
        done = repair(user, case, server.url)
    failure(done, code=1, kind="integrity", says="torchvision")


def test_no_wheel_offline(user: Shell, case: Case, tmp_path: Path) -> None:
    done = repair(user, case, case.index.replace("file:", "http:"), "--offline")
    failure(done, code=1, kind="no-solution", says=f"torchvision=={REPAIRED}")
    assert "--offline" in done.document["hint"]
    gone = repair(user, case, case.index, "--find-links", str(tmp_path / "gone"))
    failure(gone, code=2, kind="input", says="does not exist")
