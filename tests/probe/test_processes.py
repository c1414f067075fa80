"""Which processes run from an environment."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import envmedic
from envmedic.probe.prefix import processes

pytestmark = pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="no /proc")
SLEEP = "import sys, time; print('up', flush=True); time.sleep(60)"


@contextmanager
def stranger(argv: list[str], **options: str | dict[str, str]) -> Iterator[int]:
    """A process that is not our descendant: started by a shell that is gone. Yields its pid."""
    shell = subprocess.Popen(
        ["/bin/sh", "-c", '"$@" & echo $!', "sh", *argv], stdout=subprocess.PIPE, text=True, **options
    )  # type: ignore[call-overload]  # cwd and env
    assert shell.stdout is not None
    lines = {shell.stdout.readline().strip(), shell.stdout.readline().strip()}
    (number,) = lines - {"up"}
    shell.wait()
    pid = int(number)
    try:
        _wait_for_adoption(pid)
        yield pid
    finally:
        os.kill(pid, 9)
        shell.stdout.close()


def _wait_for_adoption(pid: int) -> None:
    for _ in range(500):
        if processes._parent(pid) != os.getpid() and os.getpid() not in processes._ancestors(pid, _parents()):
            return
        time.sleep(0.01)
    pytest.skip("this machine leaves orphans with their grandparent")


def _parents() -> dict[int, int]:
    pids = [int(item.name) for item in Path("/proc").iterdir() if item.name.isdecimal()]
    return {pid: processes._parent(pid) for pid in pids}


def seen(prefix: Path) -> dict[int, str]:
    return {item.pid: item.why for item in processes.users(prefix)}


def interpreter_in(prefix: Path) -> Path:
    """A link to this Python in the prefix, as a venv has it."""
    (prefix / "bin").mkdir(parents=True)
    link = prefix / "bin" / "python"
    link.symlink_to(sys.executable)
    return link


def test_interpreter_of_the_prefix_is_seen_by_either_spelling(tmp_path: Path) -> None:
    python = interpreter_in(tmp_path / "real env")
    (tmp_path / "link").symlink_to("real env")
    with stranger([str(python), "-S", "-c", SLEEP]) as pid:
        assert seen(tmp_path / "real env") == {pid: "exe"}
        assert seen(tmp_path / "link") == {pid: "exe"}
        assert seen(tmp_path / "real") == {}
    with stranger([str(tmp_path / "link/bin/python"), "-S", "-c", SLEEP]) as pid:
        assert seen(tmp_path / "link") == {pid: "exe"}


def test_interpreter_that_was_started_by_its_bare_name_is_seen(tmp_path: Path) -> None:
    interpreter_in(tmp_path / "env")
    environment = {**os.environ, "PATH": f"{tmp_path / 'env' / 'bin'}:/usr/bin:/bin"}
    with stranger(["python", "-S", "-c", SLEEP], env=environment) as pid:
        assert seen(tmp_path / "env") == {pid: "exe"}


def test_interpreter_that_was_started_by_a_relative_path_is_seen(tmp_path: Path) -> None:
    interpreter_in(tmp_path / ".venv")
    with stranger([".venv/bin/python", "-S", "-c", SLEEP], cwd=str(tmp_path)) as pid:
        assert seen(tmp_path / ".venv") == {pid: "exe"}


def test_working_directory_and_mapped_files_are_seen(tmp_path: Path) -> None:
    (tmp_path / "env" / "sub").mkdir(parents=True)
    with stranger([sys.executable, "-S", "-c", SLEEP], cwd=str(tmp_path / "env" / "sub")) as pid:
        assert seen(tmp_path / "env") == {pid: "cwd"}
    data = tmp_path / "env" / "lib file.so"
    data.write_bytes(bytes(8192))
    code = f"import mmap; m = mmap.mmap((f := open({str(data)!r}, 'r+b')).fileno(), 0); " + SLEEP
    with stranger([sys.executable, "-S", "-c", code]) as pid:
        assert seen(tmp_path / "env") == {pid: "maps"}


APART = ("unshare", "-m" if os.geteuid() == 0 else "-rm")


def test_container_with_an_environment_of_its_own_at_the_same_path_is_left_out(tmp_path: Path) -> None:
    """By argv, exe and maps it looks like one of ours; a mount of our own directory there stays one."""
    ours, theirs = tmp_path / "env", tmp_path / "other"
    interpreter_in(ours)
    interpreter_in(theirs)
    mount = ["mount", "--bind", str(theirs), str(ours)]
    if shutil.which("unshare") is None or subprocess.run([*APART, *mount], check=False, capture_output=True).returncode:
        pytest.skip("no mount namespace here")
    for source, expected in ((theirs, {}), (ours, {"exe"})):
        mounts = f'mount --bind "{source}" "{ours}" && exec "{ours}/bin/python" -c "$0"'
        with stranger([*APART, "sh", "-c", mounts, SLEEP]) as pid:
            assert {why for number, why in seen(ours).items() if number == pid} == set(expected)


def test_our_own_children_are_left_out(tmp_path: Path) -> None:
    python = interpreter_in(tmp_path / "env")
    child = subprocess.Popen([str(python), "-S", "-c", SLEEP], stdout=subprocess.PIPE)
    try:
        assert child.stdout is not None
        child.stdout.readline()
        assert seen(tmp_path / "env") == {}
    finally:
        child.kill()
        child.communicate()


def test_the_shell_that_stands_in_the_environment_and_starts_us_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "env").mkdir()
    code = "from pathlib import Path; from envmedic.probe.prefix import processes; print(processes.users(Path('.')))"
    script = f'"{sys.executable}" -c "{code}"'
    environment = {**os.environ, "PYTHONPATH": str(Path(envmedic.__file__).parent.parent)}
    result = subprocess.run(
        ["/bin/sh", "-c", f"{script}; exit $?"], cwd=tmp_path / "env", env=environment, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert (result.stdout.strip(), result.stderr) == ("()", "")
