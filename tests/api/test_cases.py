"""The case of a failed program: its user's alone, and none of root's where another user could exchange files."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from envmedic.api.planning import cases
from envmedic.errors import InputError, PreflightError
from envmedic.model.findings import Diagnosis
from tests.engine.world import make_environment

NOBODY = 65534
RAN: Any = SimpleNamespace(
    lines=lambda: iter([b"error\n"]), argv=("train",), variables={}, seconds=1.0, how=lambda: "exit status 1"
)


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "state").mkdir()
    return tmp_path / "state"


@pytest.fixture
def roots_state(state: Path) -> Iterator[Path]:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    yield state
    assert not list(state.rglob("*.json"))


@pytest.mark.usefixtures("state")
def test_whatever_the_umask_nobody_else_reads_a_case(tmp_path: Path) -> None:
    prefix = make_environment(tmp_path / "env")
    before = os.umask(0)
    try:
        path = cases.keep(prefix, RAN)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert cases.load(prefix).text == "error\n"


@pytest.mark.usefixtures("state")
def test_a_program_is_kept_beside_its_case_for_its_owner_alone(tmp_path: Path) -> None:
    prefix = make_environment(tmp_path / "env")
    program = cases.keep_program(prefix, "x = 1\n")
    assert (program.read_text(encoding="utf-8"), stat.S_IMODE(program.stat().st_mode)) == ("x = 1\n", 0o600)
    assert program.with_suffix("") == cases.keep(prefix, RAN).with_suffix("")


@pytest.mark.usefixtures("roots_state")
def test_root_keeps_no_case_of_an_environment_of_another_user(tmp_path: Path) -> None:
    prefix = make_environment(tmp_path / "env")
    os.chown(prefix, NOBODY, NOBODY)
    with pytest.raises(PreflightError, match="root does not work on it"):
        cases.keep(prefix, RAN)


def test_root_keeps_no_case_below_a_directory_of_another_user(tmp_path: Path, roots_state: Path) -> None:
    os.chown(roots_state, NOBODY, NOBODY)
    with pytest.raises(PermissionError, match="another user"):
        cases.keep(make_environment(tmp_path / "env"), RAN)


@pytest.mark.usefixtures("state")
def test_a_time_before_the_failure_proves_nothing(tmp_path: Path) -> None:
    prefix = make_environment(tmp_path / "env")
    cases.keep(prefix, RAN)
    case, found = cases.load(prefix), Diagnosis(prefix=None, facts=None, verdict="unknown")
    with pytest.raises(InputError, match=r"took 1\.0 s"):
        cases.program_of(case, (), found, 0.9)
    assert cases.program_of(case, (), found, 1.0).pass_after_s == 1.0
    assert cases.program_of(case, (), found, None).pass_after_s == 60.0
