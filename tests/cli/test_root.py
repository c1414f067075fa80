"""As root on somebody else's environment: its owner carries the repair out, and can go on without root."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cli.support import LIMIT_S, REPAIR, ROOT, Shell, failure, state_of, torchvision, user_of
from tests.cli.test_places import owned, runs_for_nobody
from tests.cli.test_places import place as place  # noqa: PLC0414  # a fixture
from tests.envs.nms_cuda.case import REPAIRED, Case, build

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root can work for another user")
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
    def store(self) -> Path:
        return self.case.prefix.parent / ".envmedic"

    def as_owner(self, *arguments: str) -> dict[str, Any]:
        """Run envmedic without root's rights and return its document."""
        become = ["setpriv", f"--reuid={self.uid}", f"--regid={self.uid}", "--clear-groups"]
        paths = os.pathsep.join([str(ROOT), sysconfig.get_path("platlib")])
        done = subprocess.run(
            [*become, self.python, "-m", "envmedic", arguments[0], "--json", *arguments[1:]],
            env={**self.root.environment(), "HOME": "/nonexistent", "PYTHONPATH": paths},
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
    return Foreign(case, user_of(case, tmp_path / "home"), uid, python)


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
    assert not (foreign.store / "wheels").exists()
    assert (foreign.root.home / ".cache" / "envmedic" / "wheels").is_dir(), "root keeps what it has fetched"

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
    assert not (foreign.store / "wheels").exists()


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


def test_an_installer_that_the_owner_cannot_reach_is_told(foreign: Foreign, tmp_path: Path) -> None:
    """Envmedic in a directory of root's own, as with a home that nobody else may enter."""
    import envmedic

    private = tmp_path / "site"
    private.mkdir(mode=0o700)
    (private / "envmedic").symlink_to(Path(envmedic.__file__).parent)
    fake = private / "uv" / "__init__.py"
    fake.parent.mkdir()
    fake.write_text(f"import shutil\ndef find_uv_bin():\n    return {str(private / 'bin' / 'uv')!r}\n")
    import uv

    (private / "bin").mkdir()
    os.link(uv.find_uv_bin(), private / "bin" / "uv")
    original = state_of(foreign.case.prefix)
    done = foreign.root.having(PYTHONPATH=str(private)).envmedic(*REPAIR, "--json", "-p", str(foreign.case.prefix))
    failure(done, code=1, kind="installer", says="cannot run")
    assert "Install envmedic where all users can read it" in done.document["hint"]
    assert state_of(foreign.case.prefix) == original
