"""Acting for another user: in one thread, for files alone, and never further than that user could."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from envmedic.errors import InstallerError, PreflightError
from envmedic.installers.wheels import chown
from envmedic.owner import User, can_reach, files_of, has_home, owner, wheels

SOMEBODY = User(uid=54321, gid=54321, groups=(54321,), name="somebody", home="/")
ROOT_ONLY = pytest.mark.skipif(os.getuid() != 0, reason="only root can act for another user")


@pytest.fixture
def open_tmp() -> Iterator[Path]:
    """A directory that other users can enter and write to, which pytest's are not."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o777)
        yield Path(name)


def test_an_environment_of_one_s_own_has_no_other_owner(tmp_path: Path) -> None:
    assert owner(tmp_path) is None


def test_wheels_lie_beside_the_real_environment(tmp_path: Path) -> None:
    (tmp_path / "envs" / "a").mkdir(parents=True)
    (tmp_path / "link").symlink_to("envs/a")
    assert wheels(tmp_path / "link") == tmp_path / "envs" / ".envmedic" / "wheels" / "a"


@ROOT_ONLY
def test_an_owner_without_an_entry_has_no_home(open_tmp: Path) -> None:
    os.chown(open_tmp, 54321, 54321)
    found = owner(open_tmp)
    assert found is not None
    assert (found.uid, found.gid, found.groups, found.home) == (54321, 54321, (54321,), "/")
    assert not has_home(found)


@ROOT_ONLY
def test_what_is_made_belongs_to_the_user_and_what_is_closed_to_them_stays_closed(open_tmp: Path) -> None:
    secret = open_tmp / "secret"
    secret.write_text("root's")
    secret.chmod(0o600)
    with files_of(SOMEBODY):
        (open_tmp / "made").mkdir()
        with pytest.raises(PermissionError):
            secret.read_text()
        with pytest.raises(PermissionError):
            Path("/etc/envmedic-test").write_text("")
    assert ((open_tmp / "made").stat().st_uid, (open_tmp / "made").stat().st_gid) == (54321, 54321)
    assert secret.read_text() == "root's", "root is root again"


@ROOT_ONLY
def test_other_threads_stay_root(open_tmp: Path) -> None:
    begin = threading.Event()

    def write() -> None:
        begin.wait(10)
        (open_tmp / "by-root").write_text("")

    thread = threading.Thread(target=write)
    thread.start()
    with files_of(SOMEBODY):
        begin.set()
        thread.join()
    assert (open_tmp / "by-root").stat().st_uid == 0


@ROOT_ONLY
def test_rights_come_back_after_an_error(open_tmp: Path) -> None:
    with pytest.raises(KeyError), files_of(SOMEBODY):
        raise KeyError
    (open_tmp / "file").write_text("")
    assert (open_tmp / "file").stat().st_uid == 0


@ROOT_ONLY
def test_a_home_counts_when_its_caches_are_the_user_s_own(open_tmp: Path) -> None:
    user = User(54321, 54321, (54321,), "somebody", str(open_tmp / "home"))
    assert not has_home(user)
    (open_tmp / "home").mkdir()
    assert not has_home(user), "it is root's"
    os.chown(open_tmp / "home", 54321, 54321)
    assert has_home(user)
    (open_tmp / "home" / ".cache").mkdir()
    assert not has_home(user), "its cache is root's"


@ROOT_ONLY
def test_a_wheel_is_handed_over_as_the_user(open_tmp: Path, tmp_path: Path) -> None:
    stored = tmp_path / "a.whl"
    stored.write_bytes(b"wheel" * 1000)
    target = open_tmp / "wheels" / "aa" / "a.whl"
    chown.copy(stored, target, SOMEBODY)
    assert target.read_bytes() == stored.read_bytes()
    assert {path.stat().st_uid for path in (target, target.parent, target.parent.parent)} == {54321}
    assert can_reach(SOMEBODY, target)
    assert not can_reach(SOMEBODY, stored)
    stored.write_bytes(b"other")
    chown.copy(stored, target, SOMEBODY)
    assert target.read_bytes() == b"other"


@ROOT_ONLY
def test_links_of_the_user_lead_root_nowhere(open_tmp: Path, tmp_path: Path) -> None:
    stored, private = tmp_path / "a.whl", open_tmp / "private"
    stored.write_bytes(b"wheel")
    private.mkdir(mode=0o755)
    (open_tmp / "wheels").symlink_to(private)
    with pytest.raises(PreflightError, match="cannot be put where somebody can read it"):
        chown.copy(stored, open_tmp / "wheels" / "a.whl", SOMEBODY)
    assert not list(private.iterdir())
    victim = private / "victim"
    victim.write_text("root's")
    (open_tmp / "a.whl.partial").symlink_to(victim)
    with pytest.raises(PreflightError):
        chown.copy(stored, open_tmp / "a.whl", SOMEBODY)
    assert victim.read_text() == "root's"


@ROOT_ONLY
def test_a_program_that_the_owner_cannot_reach_is_an_error_with_a_next_step(open_tmp: Path, tmp_path: Path) -> None:
    (open_tmp / "env" / "bin").mkdir(parents=True)
    os.chown(open_tmp / "env", 54321, 54321)
    program = tmp_path / "uv"  # pytest's directories are root's alone
    program.write_text("")
    python = str(open_tmp / "env" / "bin" / "python")
    with pytest.raises(InstallerError, match="54321, who owns") as caught:
        chown.require_reachable(str(program), python)
    assert caught.value.hint is not None
    chown.require_reachable("/bin/sh", python)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can act for another user")
def test_what_runs_as_somebody_else_gets_none_of_roots_secrets(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from envmedic.engine.stage.environ import variables
    from envmedic.owner import User
    from envmedic.proc import ask

    somebody = User(54321, 54321, (54321,), "somebody", "/")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "roots-key")
    monkeypatch.setenv("PIP_INDEX_URL", "https://root:roots-login@index.example/simple")
    monkeypatch.setenv("HARMLESS", "told")
    told = ask(["/usr/bin/env"], timeout_s=1800, user=somebody).stdout
    assert "roots-" not in told
    assert "HARMLESS=told" in told
    assert "roots-key" in ask(["/usr/bin/env"], timeout_s=1800).stdout
    own = ask(["/usr/bin/env"], timeout_s=1800, env={"HF_TOKEN": "the-environment's-own"}, user=somebody).stdout
    assert "HF_TOKEN=the-environment's-own" in own
    assert "roots-" not in str(variables(tmp_path, somebody, {}))
    assert "roots-" in str(variables(tmp_path, None, {}))
