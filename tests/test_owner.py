"""Whose rights root takes on for an environment, and where it refuses."""

from __future__ import annotations

import os
import pwd
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from envmedic.errors import PreflightError
from envmedic.owner import Passage, User, Waypoint, acting_for, identity, owner, require_own, user, way_to
from envmedic.proc import ask

ADA, BOB = 54321, 54322
SOMEBODY = User(uid=ADA, gid=ADA, groups=(ADA,), name="somebody", home="/")
ROOT_ONLY = pytest.mark.skipif(os.getuid() != 0, reason="only root can act for another user")


def place(path: str, uid: int = 0, *, link: bool = False, open_to_all: bool = False) -> Waypoint:
    return Waypoint(path, uid, uid, link, open_to_all)


def way(*passed: Waypoint, held: tuple[Waypoint, ...] = ()) -> Passage:
    return Passage((place("/"), *passed, *held), held)


@pytest.mark.parametrize(
    ("found", "uid", "refused"),
    [
        (way(place("/srv"), held=(place("/srv/env"), place("/srv"))), None, None),
        (way(place("/users"), held=(place("/users/p/env", ADA), place("/users/p", ADA))), ADA, None),
        (way(place("/users"), held=(place("/users/env", ADA), place("/users"))), ADA, None),
        (way(held=(place("/users/p/env"), place("/users/p", ADA))), ADA, None),
        (way(held=(place("/s/env"), place("/s"), place("/s/.envmedic", ADA))), ADA, None),
        (way(held=(place("/s/env", ADA), place("/s", BOB))), ADA, f"/s to uid {BOB}"),
        (way(held=(place("/s/env", ADA), place("/s"), place("/s/.envmedic", BOB))), ADA, "/s/.envmedic to uid"),
        (way(place("/b/link", BOB, link=True), held=(place("/s/env", ADA), place("/s"))), ADA, "/b/link to uid"),
        (way(place("/data", BOB), held=(place("/data/a/env", ADA), place("/data/a", ADA))), ADA, None),
        (
            way(place("/users/p", ADA), held=(place("/users/p/a/env"), place("/users/p/a"))),
            None,
            "/users/p belongs to uid",
        ),
        (way(place("/open", open_to_all=True), held=(place("/open/a/env"), place("/open/a"))), None, "can be changed"),
        (way(held=(place("/s/env", open_to_all=True), place("/s"))), None, "/s/env can be changed by other users"),
        (way(place("/l", ADA, link=True), held=(place("/s/env"), place("/s"))), None, "/l belongs to uid"),
    ],
)
def test_one_owner_is_taken_on_and_two_are_refused(found: Passage, uid: int | None, refused: str | None) -> None:
    whose, why = identity(found)
    assert (whose.uid if whose else None) == uid
    assert (refused or "") in (why or "")
    assert (why is None) == (refused is None)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A directory that other users can pass, which pytest's are not."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        (Path(name) / "p" / "env").mkdir(parents=True)
        yield Path(name)


def test_an_environment_of_one_s_own_has_no_other_owner(tmp_path: Path) -> None:
    assert owner(tmp_path) is None
    assert acting_for(tmp_path / "missing" / "env", []) is None
    require_own(tmp_path)


@ROOT_ONLY
def test_the_way_has_every_link_and_what_stands_for_a_missing_prefix(folder: Path) -> None:
    (folder / "p" / "link").symlink_to("../p/env")
    (folder / "p" / ".envmedic").mkdir()
    found = way_to(folder / "p" / "link")
    assert [item.path for item in found.held] == [str(folder / name) for name in ("p/env", "p", "p/.envmedic")]
    assert [item.path for item in found.passed if item.link] == [str(folder / "p" / "link")]
    assert [item.path for item in way_to(folder / "p" / "gone").held] == [
        str(folder / "p"),
        str(folder / "p/.envmedic"),
    ]
    assert [item.path for item in way_to(folder / "no" / "gone").held] == [str(folder)]
    (folder / "loop").symlink_to("loop")
    assert way_to(folder / "loop").held


@ROOT_ONLY
def test_behind_a_link_of_envmedic_s_own_layout_the_link_s_directory_and_store_are_held(folder: Path) -> None:
    """Who can change these can exchange the environment, wherever its tree lies."""
    tree = folder / "p" / ".envmedic-trees" / "linked" / "tree"
    tree.mkdir(parents=True)
    (folder / "p" / ".envmedic").mkdir()
    link = folder / "p" / "linked"
    link.symlink_to(".envmedic-trees/linked/tree")
    assert {item.path for item in way_to(link).held} == {
        str(item) for item in (tree, folder / "p", folder / "p/.envmedic")
    }
    require_own(link)
    for path in (link, tree, tree.parent, tree.parent.parent, folder / "p", folder / "p/.envmedic"):
        os.chown(path, ADA, ADA, follow_symlinks=False)
        with pytest.raises(PreflightError):
            require_own(link)
        os.chown(path, 0, 0, follow_symlinks=False)
    require_own(link)


@ROOT_ONLY
def test_the_owner_of_prefix_parent_or_store_is_the_one_to_be(folder: Path) -> None:
    prefix = folder / "p" / "env"
    (folder / "p" / ".envmedic").mkdir()
    for path in (prefix, prefix.parent, prefix.parent / ".envmedic"):
        os.chown(path, ADA, ADA)
        whom = acting_for(prefix, ["envmedic", "undo", "-p", "a b"])
        assert whom is not None
        assert whom.uid == ADA
        with pytest.raises(PreflightError, match="belongs to 54321, and root does not work on it") as caught:
            require_own(prefix)
        assert f"setpriv --reuid={ADA} --regid={ADA} --clear-groups envmedic" in str(caught.value.hint)
        os.chown(path, 0, 0)
    require_own(prefix)


@ROOT_ONLY
def test_two_owners_are_refused_with_the_command_of_one(folder: Path) -> None:
    prefix = folder / "p" / "env"
    nobody = pwd.getpwnam("nobody")
    os.chown(prefix, nobody.pw_uid, nobody.pw_gid)
    os.chown(prefix.parent, BOB, BOB)
    with pytest.raises(PreflightError, match="does not choose") as caught:
        acting_for(prefix, ["envmedic", "undo", "-p", "a b"])
    assert str(caught.value.hint).endswith("sudo -u nobody envmedic undo -p 'a b'")


@ROOT_ONLY
@pytest.mark.parametrize("mode", [0o777, 0o775])
def test_root_s_environment_below_what_others_can_write_is_refused_unless_that_is_sticky(
    folder: Path, mode: int
) -> None:
    os.chown(folder, 0, 100 if mode == 0o775 else 0)
    if mode == 0o775 and not any(entry.pw_gid == 100 and entry.pw_uid for entry in pwd.getpwall()):
        os.chown(folder, 0, ADA)  # of which nobody knows who has it
    folder.chmod(mode)
    with pytest.raises(PreflightError, match="which other users can exchange"):
        require_own(folder / "p" / "env")
    folder.chmod(mode | 0o1000)
    require_own(folder / "p" / "env")
    folder.chmod(0o775)
    os.chown(folder, 0, 0)
    require_own(folder / "p" / "env")


@ROOT_ONLY
def test_a_user_has_groups_and_home_of_the_database() -> None:
    known = next(entry for entry in pwd.getpwall() if entry.pw_uid not in {0, 65534})
    found = user(known.pw_uid, 12345)
    assert (found.uid, found.gid, found.name, found.home) == (known.pw_uid, known.pw_gid, known.pw_name, known.pw_dir)
    assert found.gid in found.groups
    assert user(54321, 12345) == User(54321, 12345, (12345,), "54321", "/", known=False)


def test_the_user_s_variables_hold_their_home_and_nothing_of_the_caller_s_home(tmp_path: Path) -> None:
    private, shared = tmp_path / "private", tmp_path / "shared"
    private.mkdir(mode=0o700)
    shared.mkdir()
    shared.chmod(0o1777)
    given = {
        "HOME": "/root", "XDG_CACHE_HOME": "/root/.cache", "UV_CACHE_DIR": "/root/uv", "TMPDIR": str(private),
        "TMP": str(shared), "TEMP": str(tmp_path / "none"), "HF_TOKEN": "hf_of_root", "HARMLESS": "told",
    }  # fmt: skip
    assert SOMEBODY.variables(given) == {
        "HOME": "/", "USER": "somebody", "LOGNAME": "somebody", "TMP": str(shared), "HARMLESS": "told",
    }  # fmt: skip


@ROOT_ONLY
def test_what_runs_as_somebody_else_gets_none_of_roots_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "roots-key")
    monkeypatch.setenv("PIP_INDEX_URL", "https://root:roots-login@index.example/simple")
    monkeypatch.setenv("HARMLESS", "told")
    told = ask(["/usr/bin/env"], timeout_s=1800, user=SOMEBODY).stdout
    assert "roots-" not in told
    assert "HARMLESS=told" in told
    assert "roots-key" in ask(["/usr/bin/env"], timeout_s=1800).stdout
    own = ask(["/usr/bin/env"], timeout_s=1800, env={"HF_TOKEN": "the-environment's-own"}, user=SOMEBODY).stdout
    assert "HF_TOKEN=the-environment's-own" in own
