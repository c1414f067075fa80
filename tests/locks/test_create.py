"""`envmedic create` and `verify --lock`: what is refused, what is left, and what is told."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from tests.cli.support import Done
from tests.locks.world import World
from tests.support.venvs import install, make_venv, python_of, site_packages
from tests.support.wheels import make_wheel

pytestmark = pytest.mark.long


def locked(room: World, form: str = "requirements") -> Path:
    """The lock of the shared environment in a file."""
    file = room.room / ("pylock.toml" if form == "pylock" else "requirements.txt")
    done = room.lock("--format", form, "-o", str(file))
    assert done.code == 0, done.told()
    return file


def create(room: World, file: Path, *arguments: str) -> Done:
    return room.user.envmedic("create", "--json", "--lock", str(file), "-p", str(room.room / "new"), *arguments)


def refused(room: World, done: Done, code: int, kind: str, says: str) -> None:
    """It failed as told, and nothing is there but what was there before."""
    assert (done.code, done.document["code"]) == (code, kind), done.told()
    assert says in " ".join(filter(None, (done.document["summary"], done.document["cause"]))), done.told()
    assert not [path.name for path in room.room.iterdir() if "new" in path.name]


def edited(file: Path, old: str, new: str) -> Path:
    """The lock with an edit, and without the digest that would tell of it."""
    lines = [line for line in file.read_text(encoding="utf-8").splitlines() if "digest" not in line]
    file.write_text("\n".join(lines).replace(old, new) + "\n", encoding="utf-8")
    return file


def test_an_existing_place_is_refused_and_an_empty_one_taken(room: World) -> None:
    file, place = locked(room), room.room / "new"
    place.mkdir()
    (place / "file").touch()
    done = create(room, file)
    assert (done.code, done.document["code"]) == (2, "input"), done.told()
    assert [path.name for path in place.iterdir()] == ["file"]
    (place / "file").unlink()
    assert create(room, file).code == 0


def test_a_wrong_hash_leaves_nothing(room: World) -> None:
    digest = room.wheels["beta"].sha256
    file = edited(locked(room), digest, "0" * 64)
    refused(room, create(room, file), 1, "integrity", "beta 2.0")


def test_a_release_that_the_index_lacks_leaves_nothing(room: World) -> None:
    file = edited(locked(room), "beta==2.0", "beta==2.1")
    refused(room, create(room, file), 1, "no-solution", "beta")


def test_a_lock_that_was_edited_is_refused(room: World) -> None:
    file = locked(room)
    file.write_text(file.read_text(encoding="utf-8").replace("beta==2.0", "beta==2.1"), encoding="utf-8")
    refused(room, create(room, file), 2, "input", "edited")


@pytest.mark.parametrize("content", ["lock-version = '9.0'\ncreated-by = 'x'\npackages = []\n", "not toml ["])
def test_an_unknown_lock_is_refused(room: World, content: str) -> None:
    file = room.room / "pylock.toml"
    file.write_text(content, encoding="utf-8")
    done = create(room, file)
    assert (done.code, done.document["code"]) == (2, "input"), done.told()


def test_another_python_than_the_locks_is_refused(room: World) -> None:
    file = edited(locked(room), f"# python: {sys.version_info[0]}.{sys.version_info[1]}.", "# python: 3.5.")
    refused(room, create(room, file), 1, "installer", "3.5")
    refused(room, create(room, file, "--python", sys.executable), 1, "installer", "The lock is for Python 3.5")


def test_another_platform_is_refused(room: World) -> None:
    refused(room, create(room, edited(locked(room), "linux-64", "osx-arm64")), 2, "input", "osx-arm64")


def test_an_editable_install_cannot_be_carried_out_elsewhere(room: World) -> None:
    file = room.room / "lock.json"
    done = room.lock("--json")
    text = done.out.replace('"kind": "wheel"', '"kind": "editable"', 1)
    file.write_text(text, encoding="utf-8")
    refused(room, create(room, file), 2, "input", "editable")


def test_offline_wheels_come_from_a_directory(room: World) -> None:
    file = locked(room)
    refused(room, create(room.forget(), file, "--offline"), 1, "no-solution", "")
    done = create(room.forget(), file, "--offline", "--find-links", str(room.wheels["alpha"].path.parent))
    assert done.code == 0, done.told()


def test_what_a_killed_run_leaves_is_removed_by_the_next(room: World) -> None:
    file = locked(room)
    arguments = ("create", "--lock", str(file), "-p", str(room.room / "new"))
    with room.user.running(*arguments) as process:
        deadline = time.monotonic() + 1800
        while not list(room.room.glob(".new.envmedic-new-*")):
            assert time.monotonic() < deadline
            time.sleep(0.005)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    left = list((room.room / "new").iterdir()) if (room.room / "new").exists() else []
    assert left == []
    assert create(room, file).code == 0
    assert not list(room.room.glob(".new.envmedic-new-*"))


def test_a_new_environment_names_its_own_place_only(room: World) -> None:
    assert create(room, locked(room, "pylock")).code == 0
    new = room.room / "new"
    texts = [path.read_bytes() for path in (*(new / "bin").iterdir(), new / "pyvenv.cfg") if not path.is_symlink()]
    assert any(str(new).encode() in text for text in texts)
    assert not any(b".new.envmedic-new-" in text for text in texts)


@pytest.fixture
def changed(room: World) -> World:
    """An environment of the test's own, made from the lock."""
    assert create(room, locked(room)).code == 0
    return room


def differences(room: World, *arguments: str) -> list[tuple[str, str, str | None, str | None]]:
    prefix = str(room.room / "new")
    done = room.user.envmedic(
        "verify", "--json", "--lock", str(room.room / "requirements.txt"), "-p", prefix, *arguments
    )
    found = done.document["differences"]
    assert done.code == bool(found), done.told()
    return [(item["kind"], item["name"], item["expected"], item["found"]) for item in found]


def test_every_way_to_differ_is_named(changed: World, tmp_path: Path) -> None:
    prefix = changed.room / "new"
    assert differences(changed) == []
    other = make_wheel(tmp_path / "other", "gamma", "4.0")
    extra = make_wheel(tmp_path / "other", "omega", "1.0")
    install(prefix, [other, extra])
    changed.uv("pip", "uninstall", "-q", "--python", str(python_of(prefix)), "beta")
    assert sorted(differences(changed)) == [
        ("extra", "omega", None, "1.0"),
        ("missing", "beta", "2.0", None),
        ("version", "gamma", "3.0", "4.0"),
    ]


def test_a_wheel_of_the_same_version_with_other_content_is_told(changed: World, tmp_path: Path) -> None:
    prefix = changed.room / "new"
    other = make_wheel(tmp_path / "other", "alpha", "1.0", files={"alpha.py": "version = 'other'\n"})
    python = str(python_of(prefix))
    changed.uv("pip", "install", "-q", "--python", python, "--no-deps", "--reinstall", str(other.path))
    assert ("hash", "alpha", changed.wheels["alpha"].sha256, other.sha256) in differences(changed)


def test_a_lost_file_and_an_edit_of_the_same_size_are_told(changed: World) -> None:
    site = site_packages(changed.room / "new")
    (site / "alpha.py").write_text("version = '9.9'\n", encoding="utf-8")
    assert [item[:2] for item in differences(changed)] == [("files", "alpha")], "the module that is imported first"
    assert [item[:2] for item in differences(changed, "--deep")] == [("files", "alpha")]
    (site / "alpha.py").unlink()
    assert [item[:2] for item in differences(changed)] == [("files", "alpha")]


def test_an_environment_of_another_python_differs(room: World) -> None:
    file = edited(locked(room), f"# python: {sys.version_info[0]}.{sys.version_info[1]}.", "# python: 3.5.")
    done = room.user.envmedic("verify", "--json", "--lock", str(file), "-p", str(room.prefix))
    assert done.code == 1
    assert [item["kind"] for item in done.document["differences"]] == ["python"]


def test_people_read_what_differs(room: World) -> None:
    other = make_venv(room.room / "other")
    done = room.user.envmedic("verify", "--lock", str(locked(room)), "-p", str(other))
    assert done.code == 1
    assert "not equal" in done.out
    assert "missing  alpha  1.0 -> nothing" in done.out


def test_a_wheel_that_a_lock_names_by_its_url_is_not_built(room: World) -> None:
    wheel = room.wheels["gamma"]
    url = f"{room.server.host}/files/{wheel.path.name}"
    file = room.room / "requirements.txt"
    file.write_text(f"gamma @ {url} --hash=sha256:{wheel.sha256}\n", encoding="utf-8")
    done = create(room, file)
    assert (done.code, done.document["differences"]) == (0, []), done.told()
