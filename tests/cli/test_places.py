"""Where an environment lies: read-only parents, full disks, mounts, links, and ordinary users."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.support import REPAIR, ROOT, Shell, failure, state_of, torchvision, user_of
from tests.envs.nms_cuda.case import REPAIRED, Case, build

pytestmark = pytest.mark.long

ROOT_ONLY = pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user or mount")
SYSTEM_PYTHON = "/usr/bin/python3"
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")


def owned(root: Path, uid: int) -> None:
    """Give a tree to a user."""
    for folder, names, files in os.walk(root):
        for name in (".", *names, *files):
            os.lchown(Path(folder, name), uid, uid)


def runs_for_nobody(python: str) -> bool:
    """Whether nobody can run what the interpreter really is, as an environment made from it does."""
    real = os.path.realpath(python)
    version = f"import sys; sys.exit(sys.version_info[:2] != {sys.version_info[:2]})"
    # by a shell: setpriv itself still has root's leave to reach everything
    return (
        subprocess.run(
            [*NOBODY, "sh", "-c", '"$0" -c "$1"', real, version], check=False, capture_output=True
        ).returncode
        == 0
    )


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that ordinary users can reach, which pytest's are not."""
    root = Path(tempfile.mkdtemp())
    root.chmod(0o755)
    yield root
    shutil.rmtree(root)


@pytest.fixture
def ordinary(place: Path) -> tuple[Case, Shell]:
    """An environment of the user nobody, and that user's shell; both Pythons are theirs to run."""
    python = next((name for name in (sys.executable, SYSTEM_PYTHON) if runs_for_nobody(name)), None)
    if python is None:
        pytest.skip("the user nobody can run no Python of this version here")
    case = build(place / "case", python=python)
    libraries = os.pathsep.join(str(folder) for folder in (sysconfig.get_paths()["purelib"], ROOT))
    tools = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    user = user_of(case, place / "home").having(
        PATH=tools, **({} if python == sys.executable else {"PYTHONPATH": libraries})
    )
    owned(place, 65534)
    return case, replace(user, program=(*NOBODY, python, "-m", "envmedic"))


@ROOT_ONLY
def test_an_ordinary_user_repairs_an_environment_of_their_own(ordinary: tuple[Case, Shell]) -> None:
    case, user = ordinary
    done = user.envmedic(*REPAIR, "--json", "-p", str(case.prefix))
    assert done.code == 0, done.told()
    assert torchvision(case.prefix) == REPAIRED
    assert {path.lstat().st_uid for path in case.prefix.rglob("*")} == {65534}
    assert user.envmedic("undo", "--yes", "-p", str(case.prefix)).code == 0


@ROOT_ONLY
def test_a_parent_that_is_not_writable(ordinary: tuple[Case, Shell]) -> None:
    case, user = ordinary
    case.prefix.parent.chmod(0o555)
    before = state_of(case.prefix.parent)
    done = user.envmedic(*REPAIR, "--json", "-p", str(case.prefix))
    failure(done, code=1, kind="preflight", says=f"{case.prefix.parent} is not writable")
    assert state_of(case.prefix.parent) == before


@contextmanager
def mounted(place: Path, size: str) -> Iterator[Path]:
    """A small file system in memory."""
    place.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)], check=False, capture_output=True, text=True
    )
    if done.returncode:
        pytest.skip(f"nothing can be mounted here: {done.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


@ROOT_ONLY
@ROOT_ONLY
def test_what_another_user_repaired_there_is_theirs_and_looking_goes_on(ordinary: tuple[Case, Shell]) -> None:
    case, user = ordinary
    (case.prefix.parent / ".envmedic").mkdir(
        mode=0o700
    )  # root's, as a repair by root of an environment beside it makes it
    target = ("-p", str(case.prefix))
    looked = user.envmedic("diagnose", "--json", *target)
    assert (looked.code, looked.document["findings"][0]["playbook"]) == (1, "nms-cuda"), looked.told()
    assert "belongs to another user" in looked.err
    for command in (("facts",), ("plan", "--playbook", "nms-cuda", "--no-gpu"), ("guard", "pip install torch==2.5.1")):
        assert user.envmedic(*command, "--json", *target).code in {0, 1}, command
    assert user.envmedic("verify", "--json", "--no-gpu", *target).document["passed"] is False
    before = state_of(case.prefix)
    for words in (
        ("undo", "--yes"),
        ("redo", "--yes"),
        ("history",),
        ("diff",),
        ("prune", "--yes"),
        ("recover",),
        REPAIR,
    ):
        failure(user.envmedic(*words, "--json", *target), code=1, kind="preflight", says=".envmedic")
    assert state_of(case.prefix) == before


@ROOT_ONLY
def test_an_environment_that_this_user_may_not_enter(ordinary: tuple[Case, Shell]) -> None:
    case, user = ordinary
    (case.prefix.parent / "private" / "env").mkdir(parents=True)
    (case.prefix.parent / "private").chmod(0o700)
    for path in ("private", "private/env"):
        done = user.envmedic("diagnose", "--json", "-p", str(case.prefix.parent / path))
        failure(done, code=2, kind="not-an-environment", says="cannot be read")


def test_no_space_for_the_clone(shared: Case, reader: Shell, tmp_path: Path) -> None:
    with mounted(tmp_path / "small", "20m") as small:
        prefix = small / "env"
        shutil.copytree(shared.prefix, prefix, symlinks=True)
        before = state_of(prefix)
        done = reader.envmedic(*REPAIR, "--json", "--clone", "copy", "-p", str(prefix))
        failure(done, code=1, kind="preflight", says=f"Not enough free space in {small}")
        assert "envmedic prune" in done.document["hint"]
        assert "MB of " in done.document["summary"]
        assert state_of(prefix) == before
        assert sorted(path.name for path in small.iterdir()) == ["env"]


@ROOT_ONLY
def test_an_environment_that_is_a_mount_point(shared: Case, reader: Shell, tmp_path: Path) -> None:
    with mounted(tmp_path / "env", "200m") as prefix:
        shutil.copytree(shared.prefix, prefix, symlinks=True, dirs_exist_ok=True)
        before = state_of(prefix)
        done = reader.envmedic(*REPAIR, "--json", "-p", str(prefix))
        failure(done, code=1, kind="preflight", says="mount")
        assert state_of(prefix) == before


def test_spaces_letters_and_links_in_the_path(room: Path) -> None:
    case = build(room / "with spaces é", name="my env")
    link = room / "link"
    link.symlink_to(case.prefix)
    user = user_of(case, room / "home")
    before = state_of(case.prefix)
    done = user.envmedic(*REPAIR, "-p", str(link))
    assert done.code == 0, done.told()
    assert f"environment: {link}" in done.lines
    assert torchvision(case.prefix) == REPAIRED
    assert link.is_symlink()
    undone = user.envmedic("undo", "--yes", "-p", str(link))
    assert undone.code == 0, undone.told()
    assert state_of(case.prefix) == before
    assert undone.out.splitlines()[-1] == f"To bring the repair back: envmedic redo -p {link}"


def test_home_and_caches_that_are_not_writable(case: Case, room: Path) -> None:
    blocked = room / "file"
    blocked.write_text("")
    user = user_of(case, room / "home").having(XDG_CACHE_HOME=str(blocked / "cache"))
    before = state_of(case.prefix)
    found = user.envmedic("diagnose", "--json", "-p", str(case.prefix))
    assert (found.code, found.document["verdict"]) == (1, "env"), found.told()
    done = user.envmedic(*REPAIR, "--json", "-p", str(case.prefix))
    assert done.code in {0, 1}, done.told()
    if done.code:
        failure(done, code=1, kind=done.document["code"], says=str(blocked))
        assert state_of(case.prefix) == before


def test_empty_variables_are_as_good_as_none(reader: Shell, shared: Case) -> None:
    bare = reader.having(HOME="", XDG_CONFIG_HOME="", XDG_CACHE_HOME="")
    assert bare.envmedic("diagnose", "--json", "-p", str(shared.prefix)).code == 1
