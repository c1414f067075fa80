"""``envmedic lock`` on real environments, and the files that it writes before the tools that read them."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from envmedic import toml
from envmedic.locks.reading import read
from tests.cli.support import Shell, failure
from tests.locks.world import World
from tests.support.index import write_index
from tests.support.venvs import editable_project, install_editable, python_of, site_packages
from tests.support.wheels import make_wheel

ALL = {"alpha==1.0", "beta==2.0", "gamma==3.0"}


def written(world: World, name: str, form: str, *more: str) -> Path:
    """A lock that must be complete."""
    path = world.room / name
    done = world.lock("--format", form, "-o", str(path), *more)
    assert done.code == 0, done.told()
    return path


def test_a_pylock_is_what_uv_pip_sync_installs(room: World) -> None:
    path = written(room, "pylock.toml", "pylock")
    new = room.empty()
    room.uv("pip", "sync", "--python", str(python_of(new)), "--preview-features", "pylock", str(path))
    assert room.installed(new) == ALL
    document = toml.loads(path.read_text(encoding="utf-8"))
    digests = {item["name"]: item["wheels"][0]["hashes"]["sha256"] for item in document["packages"]}
    assert digests == {name: wheel.sha256 for name, wheel in room.wheels.items()}


def test_requirements_are_what_pip_and_uv_install_with_hashes(room: World) -> None:
    path = written(room, "requirements.txt", "requirements")
    by_pip, by_uv = room.empty("by-pip"), room.empty("by-uv")
    room.pip(by_pip, "install", "-q", "--no-deps", "--require-hashes", "-r", str(path))
    room.uv("pip", "sync", "--python", str(python_of(by_uv)), "--require-hashes", str(path))
    assert room.installed(by_pip) == room.installed(by_uv) == ALL


def test_a_wrong_hash_is_refused_by_pip(room: World) -> None:
    path = written(room, "requirements.txt", "requirements")
    path.write_text(path.read_text(encoding="utf-8").replace(room.wheels["beta"].sha256, "0" * 64), encoding="utf-8")
    new = room.empty()
    command = ["install", "--no-deps", "--require-hashes", "-r", str(path)]
    done = room.attempt(["python3", "-m", "pip", "--python", str(python_of(new)), *command])
    assert done.returncode != 0
    assert "HASHES" in done.stderr
    assert room.installed(new) == set()


def test_the_lock_of_what_a_lock_installed_is_the_same(room: World) -> None:
    for name, form in (("pylock.toml", "pylock"), ("requirements.txt", "requirements")):
        first = written(room, name, form)
        new = room.empty(f"new-{form}")
        room.uv("pip", "sync", "--python", str(python_of(new)), str(first))
        second = room.room / f"second-{name}"
        done = room.lock("--format", form, "-o", str(second), prefix=new)
        assert done.code == 0, done.told()
        assert read(first).packages == read(second).packages


def test_a_file_in_a_directory_that_is_an_index_is_named_by_the_default_index_where_that_has_it(room: World) -> None:
    mirror = write_index(room.room / "mirror", list(room.wheels.values()))
    assert mirror.startswith("file:")
    both = replace(room, user=room.user.having(PIP_EXTRA_INDEX_URL=mirror)).forget()
    done = both.lock("--format", "pylock")
    assert done.code == 0, done.told()
    urls = {item["name"]: item["wheels"][0]["url"] for item in toml.loads(done.out)["packages"]}
    assert urls.keys() == room.wheels.keys()
    assert all(url.startswith("http:") for url in urls.values()), urls


def test_without_any_cache_entries_are_named_and_nothing_is_written(room: World) -> None:
    path = room.room / "pylock.toml"
    done = room.forget().lock("--offline", "-o", str(path))
    assert done.code == 1
    assert not path.exists()
    assert "alpha 1.0, beta 2.0, gamma 3.0" in done.err
    assert "without --offline" in done.err


@pytest.mark.long
def test_an_index_that_cannot_be_asked_is_told_and_its_entries_are_missing(room: World) -> None:
    path = room.room / "pylock.toml"
    gone = dict.fromkeys(("PIP_INDEX_URL", "UV_DEFAULT_INDEX"), "http://127.0.0.1:9/simple")
    room = replace(room, user=Shell(room.user.home, {**room.user.variables, **gone}))
    done = room.forget().lock("-o", str(path))
    assert done.code == 1, done.told()
    assert "Hashes that only an index knows are missing: " in done.err
    assert "alpha 1.0, beta 2.0, gamma 3.0" in done.err
    failure(room.forget().lock("--fetch-hashes", "--json", "-o", str(path)), code=1, kind="network", says="127.0.0.1")
    assert not path.exists()


def test_incomplete_locks_are_written_where_that_is_accepted(room: World) -> None:
    path = room.room / "requirements.txt"
    done = room.forget().lock("--offline", "--format", "requirements", "-o", str(path), "--allow-incomplete", "--json")
    assert done.code == 1
    assert [item["name"] for item in done.document["incomplete"]] == ["alpha", "beta", "gamma"]
    assert "# not in it: beta 2.0:" in path.read_text(encoding="utf-8")
    assert read(path).packages == ()


def test_hashes_are_fetched_where_they_are_not_known_here(room: World) -> None:
    done = room.forget().lock("--json")
    assert done.code == 0, done.told()
    packages = {item["name"]: item for item in done.document["packages"]}
    assert {name: item["sha256"] for name, item in packages.items()} == {
        name: wheel.sha256 for name, wheel in room.wheels.items()
    }
    assert {item["hash_source"] for item in packages.values()} == {"index"}


def test_a_wheel_that_is_named_otherwise_is_told_by_its_content(world: World) -> None:
    """The index has another build of gamma beside the one that is installed, as its source archive would allow."""
    gamma = world.wheels["gamma"]
    other = make_wheel(
        world.room / "other", "gamma", "3.0", tags=(gamma.path.stem.split("-", 2)[2].replace("manylinux1", "manylinux_2_17"),),
        files={"gamma.py": "version = 'another build'\n"},
    )  # fmt: skip
    write_index(world.room / "index", [*world.wheels.values(), other])
    done = world.forget().lock("--json")
    assert done.code == 0, done.told()
    found = next(item for item in done.document["packages"] if item["name"] == "gamma")
    assert found["sha256"] == gamma.sha256


def test_no_option_is_advised_that_was_given(world: World) -> None:
    shutil.rmtree(world.room / "index" / "simple" / "gamma")
    done = world.forget().lock("--json")
    assert done.code == 1, done.told()
    (left,) = done.document["incomplete"]
    assert left["name"] == "gamma"
    assert "no index that is configured for pip or uv has its file" in left["reason"]
    assert "--offline" not in done.err


def test_a_file_edited_since_proves_nothing(world: World) -> None:
    """RECORD of the installed gamma no longer lists what any wheel of the index has."""
    record = next(site_packages(world.prefix).glob("gamma-*.dist-info/RECORD"))
    lines = record.read_text(encoding="utf-8").splitlines()
    forged = [line.replace("sha256=", "sha256=A", 1) if line.startswith("gamma.py") else line for line in lines]
    record.write_text("\n".join(forged) + "\n", encoding="utf-8")
    page = world.room / "index" / "simple" / "gamma" / "index.html"
    link = f'<a href="../../files/gamma-3.0.tar.gz#sha256={"0" * 64}">gamma-3.0.tar.gz</a>'
    page.write_text(page.read_text(encoding="utf-8").replace("<body>", f"<body>{link}"), encoding="utf-8")
    done = world.forget().lock("--json")
    found = next(item for item in done.document["packages"] if item["name"] == "gamma")
    assert found["kind"] == "sdist"
    assert done.document["builds"] is True


def test_a_wheel_that_envmedic_keeps_gives_the_hash_and_needs_no_network(room: World) -> None:
    beta = room.wheels["beta"]
    other = room.forget()
    folder = other.user.home / ".cache" / "envmedic" / "wheels" / beta.sha256[:2] / beta.sha256
    folder.mkdir(parents=True)
    shutil.copy(beta.path, folder)
    done = other.lock("--offline", "--format", "requirements", "--json")
    found = {item["name"]: item for item in done.document["packages"]}
    assert found["beta"]["sha256"] == beta.sha256
    assert found["beta"]["hash_source"] == "wheel cache"
    assert [item["name"] for item in done.document["incomplete"]] == ["alpha", "gamma"]


def test_a_kept_wheel_with_other_content_is_not_believed(room: World) -> None:
    changed = make_wheel(room.room / "changed", "alpha", "1.0", files={"alpha.py": "version = 'changed'\n"})
    found = ("--offline", "--find-links", str(changed.path.parent))
    done = room.forget().lock(*found, "--format", "requirements", "--json")
    assert "alpha" in [item["name"] for item in done.document["incomplete"]]


def test_editable_and_local_installs_are_listed_as_what_they_are(world: World) -> None:
    install_editable(world.prefix, editable_project(world.room / "secret-place" / "mine", "mine"))
    wheel = make_wheel(world.room / "secret-place", "handed", "1.0")
    world.uv("pip", "install", "-q", "--python", str(python_of(world.prefix)), str(wheel.path))
    done = world.lock("--format", "requirements", "--json")
    assert done.code == 1
    kinds = {item["name"]: item["kind"] for item in done.document["packages"]}
    assert kinds == {"alpha": "wheel", "beta": "wheel", "gamma": "wheel", "handed": "wheel", "mine": "editable"}
    assert [item["name"] for item in done.document["incomplete"]] == ["mine"]
    assert "secret-place" not in done.out
    handed = next(item for item in done.document["packages"] if item["name"] == "handed")
    assert handed["sha256"] == hashlib.sha256(wheel.path.read_bytes()).hexdigest()


def test_no_login_reaches_any_file(world: World) -> None:
    world.server.credentials = ("somebody", "s3cret")
    index = f"http://somebody:s3cret@{world.index.removeprefix('http://')}"
    variables = {**world.user.variables, "UV_DEFAULT_INDEX": index, "PIP_INDEX_URL": index}
    other = world.forget()
    shell = type(other.user)(other.user.home, variables)
    new = world.empty()
    url = f"{index.rpartition('/')[0]}/files/{world.wheels['alpha'].path.name}?token=s3cret"
    private = type(world)(world.room, world.server, world.wheels, new, shell)
    private.uv("pip", "install", "-q", "--python", str(python_of(new)), "beta", "gamma", f"alpha @ {url}")
    for form in ("pylock", "requirements", "environment", "dockerfile"):
        path = world.room / f"{form}.out"
        done = private.lock("--format", form, "-o", str(path), "--json", "--allow-incomplete", "--fetch-hashes")
        text = path.read_text(encoding="utf-8")
        assert "s3cret" not in text + done.out + done.err, form
        assert "somebody" not in text + done.out + done.err, form
        assert "alpha" in text


def test_the_lock_is_printed_where_no_file_is_named(shared: World) -> None:
    done = shared.lock("--format", "requirements", "-q")
    assert done.code == 0, done.told()
    assert done.out.count("--hash=sha256:") == 3
    assert json.loads(shared.lock("--json").out)["schema"] == "envmedic.lock/1"


def test_a_lock_changes_nothing(room: World) -> None:
    before = {path: path.stat().st_mtime_ns for path in room.prefix.rglob("*")}
    assert room.lock().code == 0
    assert {path: path.stat().st_mtime_ns for path in room.prefix.rglob("*")} == before


def test_a_place_that_cannot_be_written_is_told(shared: World) -> None:
    done = shared.lock("-o", str(shared.room / "missing" / "pylock.toml"), "--json")
    assert done.code == 2
    assert done.document["schema"] == "envmedic.error/1"
