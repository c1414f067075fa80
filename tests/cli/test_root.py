"""As root on somebody else's environment: the whole command is its owner's, whatever that owner does meanwhile."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import shlex
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cli.support import LIMIT_S, REPAIR, ROOT, Shell, failure, state_of, torchvision
from tests.cli.test_places import owned, runs_for_nobody
from tests.cli.test_places import place as place  # noqa: PLC0414  # a fixture
from tests.envs.nms_cuda.case import BROKEN, REPAIRED, Case, build
from tests.support import attacker

pytestmark = [pytest.mark.long, pytest.mark.skipif(os.getuid() != 0, reason="only root can work for another user")]
FOLDERS = 40
NOBODY, UNKNOWN = 65534, 54321
"""A user whose home does not exist, and one whom the user database does not know."""


@dataclass(frozen=True)
class Foreign:
    """An environment of another user, and root's shell."""

    case: Case
    root: Shell
    uid: int
    python: str
    """An interpreter that the owner can run."""

    @property
    def prefix(self) -> str:
        return str(self.case.prefix)

    @property
    def store(self) -> Path:
        return self.case.prefix.parent / ".envmedic"

    def as_owner(self, *arguments: str) -> dict[str, Any]:
        """Run envmedic without root's rights and return its document."""
        done = subprocess.run(
            [*attacker.becoming(self.uid), self.python, "-m", "envmedic", arguments[0], "--json", *arguments[1:]],
            env={**self.root.environment(), "HOME": "/nonexistent"},
            cwd="/",
            capture_output=True,
            timeout=LIMIT_S,
            check=False,
        )
        assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()
        found: dict[str, Any] = json.loads(done.stdout)
        return found


@pytest.fixture
def foreign(request: pytest.FixtureRequest, place: Path, tmp_path: Path) -> Foreign:
    """Of the user that a test asks for, by default the unknown one."""
    uid: int = getattr(request, "param", UNKNOWN)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    python = next((name for name in (sys.executable, f"/usr/bin/{version}") if runs_for_nobody(name)), None)
    if python is None:
        pytest.skip(f"other users cannot run a {version} here")
    case = build(place / "case", python=python)
    owned(case.prefix.parent, uid)
    paths = os.pathsep.join([str(ROOT), sysconfig.get_path("platlib")])
    root = Shell(tmp_path / "home", {**case.index_variables(), "PYTHONPATH": paths}, (python, "-m", "envmedic"))
    root.home.mkdir()
    return Foreign(case, root, uid, python)


@pytest.mark.parametrize("foreign", [NOBODY, UNKNOWN], ids=["nobody", "unknown"], indirect=True)
def test_root_repairs_and_the_owner_goes_back(foreign: Foreign) -> None:
    prefix = str(foreign.case.prefix)
    original = state_of(foreign.case.prefix)
    planned = foreign.root.envmedic("plan", "--playbook", "nms-cuda", "--no-gpu", "--json", "-p", prefix)
    assert planned.code == 0, planned.told()

    applied = foreign.root.envmedic(*REPAIR, "--json", "-p", prefix)
    assert applied.code == 0, applied.told()
    assert applied.document["plan"]["commands"] == planned.document["commands"]
    assert ran(foreign.store) == planned.document["commands"], "what is shown is what runs"
    assert torchvision(foreign.case.prefix) == REPAIRED
    kept = [path for path in (foreign.case.prefix, foreign.store) for path in (path, *path.rglob("*"))]
    assert {path.lstat().st_uid for path in kept} == {foreign.uid}
    assert list(foreign.root.home.iterdir()) == [], "nothing of it is root's"

    verified = foreign.root.envmedic("verify", "--no-gpu", "--json", "-p", prefix)
    assert verified.code == 0, verified.told()

    assert foreign.as_owner("undo", "--yes", "-p", prefix)["environment"] == "restored"
    assert state_of(foreign.case.prefix) == original
    foreign.as_owner("redo", "--yes", "-p", prefix)
    assert foreign.as_owner("prune", "--yes", "--keep", "0", "-p", prefix)["generations"]
    assert not list(foreign.store.glob("*/env"))


def ran(store: Path) -> list[list[str]]:
    """The commands of the steps, as the transaction's events tell them."""
    (file,) = store.glob("*/events.jsonl")
    events = [json.loads(line)["data"] for line in file.read_text().splitlines()]
    return [argv for event in events if event["type"] == "step-started" for argv in event["commands"]]


def test_an_aborted_repair_leaves_nothing_of_root_s(foreign: Foreign) -> None:
    original = state_of(foreign.case.prefix)
    done = foreign.root.envmedic(
        *REPAIR, "--json", "-p", str(foreign.case.prefix), "--reproduce", "--", "sh", "-c", "exit 1"
    )
    assert done.code == 4, done.told()
    assert state_of(foreign.case.prefix) == original
    assert {path.lstat().st_uid for path in (foreign.store, *foreign.store.rglob("*"))} == {foreign.uid}


def test_root_starts_nothing_that_belongs_to_the_owner(foreign: Foreign) -> None:
    note = foreign.case.prefix.parent / "started-by"
    python = foreign.case.prefix / "bin" / "python"
    real = python.resolve()
    python.unlink()
    python.write_text(f"#!/bin/sh\nid -u >> '{note}'\nexec {real} \"$@\"\n")
    python.chmod(0o755)
    owned(foreign.case.prefix, foreign.uid)
    for command in (("facts",), ("plan", "--playbook", "nms-cuda", "--no-gpu"), ("verify", "--no-gpu")):
        foreign.root.envmedic(*command, "--json", "-p", str(foreign.case.prefix))
    assert set(note.read_text().split()) == {str(foreign.uid)}


def at_terminal(root: Shell, *argv: str, answer: bytes = b"") -> tuple[int, str]:
    """Exit status and output of a command at a terminal of root's, where a question gets the `answer`."""
    pid, ours = pty.fork()
    if pid == 0:
        os.chdir(ROOT)
        os.execve(argv[0], argv, root.environment())
    told = b""
    with contextlib.suppress(OSError):  # EIO: it has ended
        while data := os.read(ours, 4096):
            if answer and b"[y/N]" in data:
                os.write(ours, answer)
            told += data
    os.close(ours)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), told.decode()


def test_the_owner_gets_no_descriptor_of_root_s_terminal(foreign: Foreign) -> None:
    """A program of the owner's could keep it, and read there what root types later."""
    note = foreign.case.prefix.parent / "streams"
    python = foreign.case.prefix / "bin" / "python"
    real = python.resolve()
    python.unlink()
    streams = " ".join(f"$(readlink /proc/$PPID/fd/{number})" for number in range(3))
    python.write_text(f'#!/bin/sh\necho "{streams}" >> \'{note}\'\nexec {real} "$@"\n')
    python.chmod(0o755)
    owned(foreign.case.prefix, foreign.uid)
    facts = shlex.join([*foreign.root.program, "facts", "-p", foreign.prefix])
    code, told = at_terminal(foreign.root, "/bin/sh", "-c", f"tty; {facts} && {facts} | cat")
    assert code == 0, told
    seen = [line.split() for line in note.read_text().splitlines()]
    assert len(seen) > 1
    assert not [line for line in seen if told.split()[0] in line]
    assert seen[0][0].startswith("/dev/pts/")
    assert seen[-1][0] == os.devnull, "there nothing can be asked in a terminal of its own"


def test_root_answers_at_the_terminal(foreign: Foreign) -> None:
    assert foreign.root.envmedic(*REPAIR, "-p", foreign.prefix).code == 0
    code, told = at_terminal(foreign.root, *foreign.root.program, "undo", "-p", foreign.prefix, answer=b"y\r")
    assert (code, torchvision(foreign.case.prefix)) == (0, BROKEN), told


def test_an_envmedic_that_the_owner_cannot_read_is_told(foreign: Foreign, tmp_path: Path) -> None:
    """Envmedic in a directory of root's own, as with a home that nobody else may enter."""
    import envmedic

    private = tmp_path / "site"
    private.mkdir(mode=0o700)
    (private / "envmedic").symlink_to(Path(envmedic.__file__).parent)
    paths = [str(private), sysconfig.get_path("platlib")]
    start = f"import sys; sys.path[:0] = {paths!r}; from envmedic.__main__ import program; sys.exit(program())"
    shell = Shell(foreign.root.home, foreign.case.index_variables(), (foreign.python, "-c", start))
    original = state_of(foreign.case.prefix)
    done = shell.envmedic(*REPAIR, "--json", "-p", foreign.prefix)
    failure(done, code=1, kind="preflight", says="Root cannot hand this command over to 54321")
    become = f"setpriv --reuid={UNKNOWN} --regid={UNKNOWN} --clear-groups envmedic apply"
    assert become in done.document["hint"]
    assert "Permission denied" in done.document["cause"]
    assert state_of(foreign.case.prefix) == original


def test_two_users_are_refused_and_so_is_what_others_can_exchange(foreign: Foreign) -> None:
    parent = foreign.case.prefix.parent
    os.chown(parent, NOBODY, NOBODY)
    for command in (("facts",), ("history",), REPAIR, ("undo", "--yes"), ("prune", "--yes"), ("recover",), ("lock",)):
        done = foreign.root.envmedic(*command, "--json", "-p", foreign.prefix)
        failure(done, code=1, kind="preflight", says="Root does not choose between the users")
        assert f"--clear-groups envmedic {command[0]}" in done.document["hint"]
    owned(foreign.case.prefix, 0)
    os.chown(parent, 0, 0)
    parent.chmod(0o777)
    done = foreign.root.envmedic(*REPAIR, "--json", "-p", foreign.prefix)
    failure(done, code=1, kind="preflight", says="which other users can exchange")
    assert not foreign.store.exists()


def test_a_signal_to_root_s_process_ends_the_owner_s(foreign: Foreign) -> None:
    with foreign.root.running(*REPAIR, "--json", "-p", foreign.prefix) as process:
        while not list(foreign.store.glob("2*")) and process.poll() is None:
            time.sleep(0.01)
        process.terminate()
        assert process.wait(LIMIT_S) in {130, 0}
    assert foreign.as_owner("history", "-p", foreign.prefix)["prefix"]


@contextmanager
def attacking(foreign: Foreign, attack: str) -> Iterator[Path]:
    """The owner attacks the while; gives the directory of root's that must not change."""
    target = foreign.case.prefix.parent.parent / "roots"
    for name in ("env", *map(str, range(FOLDERS))):
        (target / name).mkdir(parents=True)
        (target / name / "kept").write_text(name)
    (target / "key").write_text("root's")
    (target / "key").chmod(0o600)
    before = attacker.canaries(target)
    with attacker.started(attack, foreign.uid, foreign.python, foreign.store, target):
        yield target
    assert attacker.canaries(target) == before


def with_folders(foreign: Foreign) -> None:
    """Give the environment directories with names of root's, and so many files that they take their time."""
    for number in range(4000):
        path = foreign.case.prefix / "aa" / f"{number % FOLDERS}" / f"{number}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    owned(foreign.case.prefix, foreign.uid)


def test_a_planted_link_leads_root_s_repair_to_no_file_of_root_s(foreign: Foreign) -> None:
    with attacking(foreign, attacker.PLANT):
        foreign.root.envmedic(*REPAIR, "-p", foreign.prefix)


def test_a_transaction_exchanged_for_a_link_leads_undo_nowhere(foreign: Foreign) -> None:
    done = foreign.root.envmedic(*REPAIR, "-p", foreign.prefix)
    assert done.code == 0, done.told()
    with attacking(foreign, attacker.EXCHANGE):
        foreign.root.envmedic("undo", "--yes", "-p", foreign.prefix)


def test_a_directory_exchanged_for_a_link_leads_prune_nowhere(foreign: Foreign) -> None:
    with_folders(foreign)
    done = foreign.root.envmedic(*REPAIR, "-p", foreign.prefix)
    assert done.code == 0, done.told()
    with attacking(foreign, attacker.DELETE):
        foreign.root.envmedic("prune", "--yes", "--keep", "0", "-p", foreign.prefix)


def test_a_directory_exchanged_for_a_link_leads_the_clone_nowhere(foreign: Foreign) -> None:
    with_folders(foreign)
    with attacking(foreign, attacker.OWN):
        foreign.root.envmedic(*REPAIR, "-p", foreign.prefix)


def test_an_owner_who_swaps_at_random_gets_nothing_of_root_s(foreign: Foreign) -> None:
    with attacking(foreign, attacker.RANDOM):
        for command in (REPAIR, ("undo", "--yes"), ("redo", "--yes"), ("prune", "--yes", "--keep", "0")):
            foreign.root.envmedic(*command, "-p", foreign.prefix)
