"""The script that unpacks a Python and starts it: started at once, cut off, and where there is no room. Its Python here is a few lines."""

from __future__ import annotations

import io
import os
import platform
import random
import shutil
import signal
import subprocess
import tarfile
import time
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.fleet import real
from tests.fleet.unit import bundle

PROGRAMS = ("sh", "cat", "chmod", "cut", "find", "gzip", "mkdir", "mktemp", "mv", "rm", "tail", "tar", "tr", "uname")
"""What it runs, besides flock."""
_PYTHON = """\
#!/bin/sh
# as a Python that waits for WAIT when it is first started
[ "$2" != -c ] || [ -z "$WAIT" ] || { read -r _ < "$WAIT"; exit; }
printf '%s\\n' "$@"
"""


@pytest.fixture
def unit(tmp_path: Path) -> Path:
    return made(tmp_path, platform.machine())


def made(room: Path, machine: str) -> Path:
    payload = room / "payload"
    with tarfile.open(payload, "w:gz") as archive:
        for name, mode, content in (
            ("python/bin/python3", 0o755, _PYTHON.encode()),
            *((f"python/lib/filler-{number}", 0o644, random.Random(number).randbytes(100_000)) for number in range(3)),
        ):
            member = tarfile.TarInfo(name)
            member.mode, member.size = mode, len(content)
            archive.addfile(member, io.BytesIO(content))
    out = room / "unit.run"
    bundle.joined(payload, machine, out)
    return out


def variables(room: Path, programs: Iterable[str] = (*PROGRAMS, "flock"), **more: str) -> dict[str, str]:
    """A home, and a PATH with some programs alone."""
    path = room / "path"
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir()
    for name in programs:
        (path / name).symlink_to(str(shutil.which(name)))
    return {"PATH": str(path), "HOME": str(room / "home"), "LC_ALL": "C", **more}


def start(argv: Iterable[object], env: dict[str, str]) -> subprocess.Popen[str]:
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([str(word) for word in argv], env=env, text=True, start_new_session=True, **pipes)  # type: ignore[call-overload,no-any-return]


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=real.LIMIT_S)
    return process.returncode, out, err


def root(room: Path) -> Path:
    return room / "home" / ".cache" / "envmedic" / "node"


def kept(room: Path) -> list[str]:
    """What is in the directory, by the ends of the names."""
    return sorted(path.suffix or "whole" for path in root(room).iterdir())


def wait_for_parts(room: Path, count: int) -> list[Path]:
    """Directories in which the Python of a start waits."""
    deadline = time.monotonic() + real.LIMIT_S
    while True:
        found = [path.parents[2] for path in root(room).glob("*.part.*/python/lib/filler-2")]
        if len(found) == count:
            return found
        assert time.monotonic() < deadline, "nothing is unpacked"
        time.sleep(0.02)


SAID = "-I\n-m\nenvmedic\nfacts\na b\n"


@pytest.mark.parametrize("shell", ["dash", "bash", "busybox"])
def test_it_unpacks_once_and_passes_arguments_in_each_shell(shell: str, unit: Path, tmp_path: Path) -> None:
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"{shell} is not installed")
    argv = [found, *(["sh"] if shell == "busybox" else []), unit, "facts", "a b"]
    for _ in range(2):
        assert ended(start(argv, variables(tmp_path))) == (0, SAID, "")
        assert kept(tmp_path) == [".lock", "whole"]


def test_a_second_start_waits_for_the_first(unit: Path, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    env = variables(tmp_path, WAIT=str(fifo))
    both = [start([unit, "facts", "a b"], env) for _ in range(2)]
    wait_for_parts(tmp_path, 1)
    fifo.write_text("go on\n")
    assert [ended(one) for one in both] == [(0, SAID, "")] * 2
    assert kept(tmp_path) == [".lock", "whole"]


def test_without_locks_each_unpacks_and_the_first_one_wins(unit: Path, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    env = variables(tmp_path, PROGRAMS, WAIT=str(fifo))
    both = [start([unit, "facts", "a b"], env) for _ in range(2)]
    wait_for_parts(tmp_path, 2)
    with fifo.open("w") as waiting:
        waiting.write("go on\n" * 2)
        waiting.flush()
        # open until both have read: who comes to a pipe that nobody writes to any more waits for ever
        assert [ended(one) for one in both] == [(0, SAID, "")] * 2
    assert kept(tmp_path) == [".lock", "whole"]


def test_a_start_that_was_killed_is_begun_anew_and_its_rest_goes_after_an_hour(unit: Path, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    cut = start([unit, "facts"], variables(tmp_path, WAIT=str(fifo)))
    (part,) = wait_for_parts(tmp_path, 1)
    os.killpg(cut.pid, signal.SIGKILL)
    cut.communicate()
    assert ended(start([unit, "facts", "a b"], variables(tmp_path))) == (0, SAID, "")
    assert part.exists()
    whole = next(path for path in root(tmp_path).iterdir() if not path.suffix)
    shutil.rmtree(whole)
    hours_ago = time.time() - 2 * 3600
    os.utime(part, (hours_ago, hours_ago))
    assert ended(start([unit, "facts", "a b"], variables(tmp_path))) == (0, SAID, "")
    assert kept(tmp_path) == [".lock", "whole"]


def refused(process: subprocess.Popen[str]) -> str:
    """What a start says that is refused: one line, since engines keep the last one."""
    code, out, err = ended(process)
    assert (code, out, err.count("\n")) == (1, "", 1), err
    assert err.startswith("error: ")
    assert err.endswith("; no environment was touched\n")
    return err


def test_a_file_that_was_cut_off_is_refused(unit: Path, tmp_path: Path) -> None:
    data = unit.read_bytes()
    unit.write_bytes(data[: len(data) // 2])
    assert "gzip: stdin: unexpected end of file" in refused(start([unit, "facts"], variables(tmp_path)))
    assert kept(tmp_path) == [".lock"]


def test_a_file_for_another_machine_is_refused(tmp_path: Path) -> None:
    unit = made(tmp_path, "sparc")
    said = refused(start([unit, "facts"], variables(tmp_path)))
    assert f"this file is for sparc, and this machine is {platform.machine()}" in said


def test_without_a_home_a_directory_is_asked_for(unit: Path, tmp_path: Path) -> None:
    env = variables(tmp_path)
    del env["HOME"]
    assert "ENVMEDIC_NODE_ROOT" in refused(start([unit, "facts"], env))
    own = {**env, "ENVMEDIC_NODE_ROOT": str(tmp_path / "own")}
    assert ended(start([unit, "facts", "a b"], own)) == (0, SAID, "")


@pytest.mark.parametrize(
    ("options", "why"),
    [("size=64k", "No space left on device"), ("ro", "Read-only file system"), ("noexec", "Permission denied")],
)
def test_a_home_that_is_full_or_read_only_is_told(options: str, why: str, unit: Path, tmp_path: Path) -> None:
    flags = real.unshare_flags()
    if flags is None:
        pytest.skip("no private mount namespaces here")
    (tmp_path / "home").mkdir()
    mounted = 'mount -t tmpfs -o "$1" tmpfs "$HOME" && shift && exec "$@"'
    env = variables(tmp_path, (*PROGRAMS, "flock", "mount"))
    argv = [str(shutil.which("unshare")), flags, "sh", "-c", mounted, "sh", options, unit, "facts", "a b"]
    said = refused(start(argv, env))
    assert why in said
    assert "name another directory in ENVMEDIC_NODE_ROOT" in said
    elsewhere = {**env, "ENVMEDIC_NODE_ROOT": str(tmp_path / "own")}
    assert ended(start(argv, elsewhere)) == (0, SAID, "")
