"""``envmedic data``: tables that come between releases, as a stranger could have made them."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import signal
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from envmedic.api.knowledge import data
from envmedic.compat import data_files, table_forms, tables, versions
from envmedic.errors import InputError, IntegrityError
from tests.cli.support import Done, Shell, failure
from tests.support.index import serve, write_index
from tests.support.wheels import Wheel
from tests.tables import wheel

SHIPPED = tables.shipped_version()
Document = dict[str, Any]


@pytest.fixture
def user(tmp_path: Path) -> Shell:
    """A user without any data file."""
    return Shell(home=tmp_path / "home", variables={"XDG_DATA_HOME": str(tmp_path / "data")})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the user's data files are."""
    return tmp_path / "data" / "envmedic" / "tables"


def newer(number: int = 1, change: Callable[[Document], object] = lambda _: None) -> bytes:
    """A data file that is newer than the shipped tables, with a torch that these lack."""
    made = {f"{name}.json": tables.read_data_file(f"{name}.json").decode() for name in tables.RENEWABLE}
    document: Document = json.loads(wheel.document(made, number))
    releases = document["tables"]["torch_releases"]["releases"]
    releases.append({**releases[-1], "version": "2.99.0"})
    change(document)
    return json.dumps(document).encode()


def file_of(directory: Path, content: bytes, name: str = "tables.json") -> str:
    path = directory / name
    path.write_bytes(content)
    return str(path)


def wheel_of(directory: Path, content: bytes) -> Wheel:
    path = wheel.build(content, directory)
    packed = path.read_bytes()
    sha256 = hashlib.sha256(packed).hexdigest()
    return Wheel("envmedic-data", path.name.split("-")[1], path, sha256, len(packed), metadata="")


def in_use(user: Shell) -> str:
    done = user.envmedic("data", "status", "--json")
    return str(done.document["version"])


def test_status_tells_the_shipped_tables_and_writes_nothing(user: Shell, tmp_path: Path) -> None:
    done = user.envmedic("data", "status", "--json")
    found = done.document
    assert (done.code, found["version"], found["origin"], found["path"]) == (0, SHIPPED, "shipped", None)
    assert found["newest_torch"] == max(tables.releases(), key=versions.parsed)
    assert found["tables"] == tables.shipped_days()
    assert not (tmp_path / "data").exists()


def test_the_program_builds_a_wheel_that_update_takes_and_every_command_uses(
    user: Shell, tmp_path: Path, folder: Path
) -> None:
    built = wheel_of(tmp_path, newer())
    with zipfile.ZipFile(built.path) as archive:
        assert [name for name in archive.namelist() if not name.startswith("envmedic_data-")] == [data_files.MEMBER]
    done = user.envmedic("data", "update", "--json", str(built.path))
    found = done.document
    assert (done.code, found["version"], found["origin"], found["changed"]) == (0, f"{SHIPPED}.1", "fetched", True)
    assert found["newest_torch"] == "2.99.0"
    (kept,) = folder.iterdir()
    assert (kept.stat().st_mode & 0o777, folder.stat().st_mode & 0o777) == (0o600, 0o700)
    assert hashlib.sha256(kept.read_bytes()).hexdigest() == found["sha256"]
    assert f"compatibility tables {SHIPPED}.1, fetched" in user.envmedic("--version", "-v").out
    assert user.envmedic("facts", "--host-only", "--json").document["data"] == f"{SHIPPED}.1"


def test_update_asks_the_users_own_index(user: Shell, tmp_path: Path) -> None:
    wheels = [wheel_of(tmp_path, newer(1)), wheel_of(tmp_path, newer(2))]
    write_index(tmp_path, wheels)
    with serve(tmp_path) as index:
        asking = user.having(PIP_INDEX_URL=index.url)
        assert asking.envmedic("data", "update", "--json").document["version"] == f"{SHIPPED}.2"
        index.seen.clear()
        offline = asking.envmedic("data", "update", "--offline", "--json")
        assert (offline.code, offline.document["code"], index.seen) == (1, "no-solution", [])
        assert in_use(asking) == f"{SHIPPED}.2"


def test_a_file_of_another_hash_than_the_index_states_is_refused(user: Shell, tmp_path: Path, folder: Path) -> None:
    built = wheel_of(tmp_path, newer())
    url = write_index(tmp_path, [built])
    (tmp_path / "files" / built.path.name).write_bytes(wheel_of(tmp_path, newer(2)).path.read_bytes())
    assert url
    with serve(tmp_path) as index:
        done = user.having(PIP_INDEX_URL=index.url).envmedic("data", "update", "--json")
    assert (done.code, done.document["code"]) == (1, "integrity")
    assert not folder.exists()


def test_an_index_without_hashes_is_refused(user: Shell, tmp_path: Path) -> None:
    write_index(tmp_path, [wheel_of(tmp_path, newer())], hashes=False)
    with serve(tmp_path) as index:
        done = user.having(PIP_INDEX_URL=index.url).envmedic("data", "update", "--json")
    assert done.document["code"] == "integrity"
    assert in_use(user) == SHIPPED


def test_an_older_file_changes_nothing(user: Shell, tmp_path: Path, folder: Path) -> None:
    old = newer(change=lambda document: document.update(version="2026.1.1"))
    done = user.envmedic("data", "update", "--json", file_of(tmp_path, old))
    assert (done.code, done.document["changed"], done.document["version"]) == (0, False, SHIPPED)
    assert "Nothing to do" in done.document["told"]
    assert not folder.exists()


def test_what_was_newer_once_is_ignored_with_a_note(user: Shell, tmp_path: Path, folder: Path) -> None:
    content = newer(change=lambda document: document.update(version="2026.1.1"))
    folder.mkdir(parents=True, mode=0o700)
    name = data_files.file_name(data_files.parse(content, tables.RENEWABLE))
    file_of(folder, content, name)
    (folder / name).chmod(0o600)
    found = user.envmedic("data", "status", "--json")
    (ignored,) = found.document["ignored"]
    assert (found.code, ignored["damaged"]) == (0, False)
    assert "the shipped tables are newer" in ignored["reason"]
    assert "data file" not in user.envmedic("facts", "--host-only").err
    assert tmp_path.exists()


def test_a_version_is_pinned_and_let_go(user: Shell, tmp_path: Path) -> None:
    first, second = (wheel_of(tmp_path, newer(number)) for number in (1, 2))
    assert user.envmedic("data", "update", str(first.path)).code == 0
    assert user.envmedic("data", "pin", "--json").document["pinned"] == f"{SHIPPED}.1"
    done = user.envmedic("data", "update", "--json", str(second.path))
    assert (done.document["version"], done.document["changed"]) == (f"{SHIPPED}.1", False)
    assert "is pinned" in done.document["told"]
    assert user.envmedic("data", "pin", "--off", "--json").document["version"] == f"{SHIPPED}.2"
    assert user.envmedic("data", "pin", SHIPPED, "--json").document["origin"] == "shipped"
    assert in_use(user) == SHIPPED


def test_a_pinned_version_is_fetched(user: Shell, tmp_path: Path) -> None:
    wheel_of(tmp_path, newer(1))
    wheel_of(tmp_path, newer(2))
    done = user.envmedic("data", "pin", f"{SHIPPED}.1", "--json", "--offline", "--find-links", str(tmp_path))
    assert (done.code, done.document["version"]) == (0, f"{SHIPPED}.1")
    lacking = user.envmedic("data", "pin", f"{SHIPPED}.3", "--json", "--offline", "--find-links", str(tmp_path))
    assert (lacking.code, lacking.document["code"]) == (1, "no-solution")
    assert user.envmedic("data", "pin", "newest", "--json").code == 2
    assert in_use(user) == f"{SHIPPED}.1"


def row(table: str, rows: str, column: str, value: object) -> Callable[[Document], object]:
    """A change of one value."""

    def change(document: Document) -> None:
        document["tables"][table][rows][0][column] = value

    return change


HOSTILE: dict[str, Callable[[Document], object]] = {
    "a variant that leads to another index": row("torch_releases", "variants", "variant", "../../evil"),
    "a variant that is an address": row("torch_releases", "default_wheels", "variants", {"linux_x86_64": "//evil"}),
    "an address in place of a version": row("torch_releases", "releases", "torchvision", "@ https://evil/x.whl"),
    "an option in place of a version": row("torch_releases", "companions", "version", "--index-url=https://evil"),
    "another name in a requirement": row("torch_releases", "releases", "triton", "evil==1"),
    "an address in a requirement": row("couplings", "releases", "requires", {"torch": "@ file:///etc/passwd"}),
    "a path as a name": row("couplings", "releases", "name", "../evil"),
    "an escape in a source": row("torch_releases", "releases", "source", ["\x1b[31m"]),
    "a code of no capability": row("gpu_arch", "sass_compatibility", "code", "sm_90; rm"),
    "a number for a text": row("torch_releases", "releases", "version", 2),
    "no releases": lambda document: document["tables"]["torch_releases"].update(releases=[]),
    "no table of drivers": lambda document: document["tables"].pop("cuda_driver"),
    "another schema": lambda document: document.update(schema="envmedic.tables/2"),
    "a version that is a path": lambda document: document.update(version="../../../2027.1.1"),
    "a version that is no day": lambda document: document.update(version="2026.13.45"),
    "a version of the future": lambda document: document.update(version="9999.1.1"),
    "a day that is none": lambda document: document["tables"]["couplings"]["meta"].update(generated="<b>"),
}


@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE)
def test_hostile_tables_are_refused(change: Callable[[Document], object]) -> None:
    with pytest.raises(IntegrityError, match="no data file that can be used") as refused:
        data._parsed(newer(change=change), "tables.json")
    assert refused.value.cause


def test_a_file_that_is_refused_changes_nothing(user: Shell, tmp_path: Path, folder: Path) -> None:
    path = file_of(tmp_path, newer(change=HOSTILE["a variant that leads to another index"]))
    failure(user.envmedic("data", "update", "--json", path), code=1, kind="integrity", says="no value of variant")
    assert not folder.exists()


@pytest.mark.parametrize("content", [b"", b"{", b"[" * 100_000, b"\xff\xfe", b"PK\x03\x04", b" " * (9 << 20)])
def test_what_is_no_data_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = file_of(tmp_path, content)
    with pytest.raises((IntegrityError, InputError)):
        data._parsed(data._from_file(path, None), path)


def packed(directory: Path, content: bytes, *, stated: bytes | None = None, twice: bool = False) -> str:
    """A wheel made by hand, whose RECORD states the hash of `stated`."""
    path = directory / "envmedic_data-2099.1.1-py3-none-any.whl"
    digest = base64.urlsafe_b64encode(hashlib.sha256(stated or content).digest()).rstrip(b"=").decode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for _ in range(1 + twice):
            archive.writestr(data_files.MEMBER, content)
        archive.writestr(
            "envmedic_data-2099.1.1.dist-info/RECORD", f"{data_files.MEMBER},sha256={digest},{len(content)}\n"
        )
    return str(path)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_wheels_that_are_not_what_they_say_are_refused(user: Shell, tmp_path: Path) -> None:
    content = newer()
    for path in (
        packed(tmp_path, content, stated=b"other"),
        packed(tmp_path, content, twice=True),
        packed(tmp_path, b"0" * (64 << 20)),
    ):
        done = user.envmedic("data", "update", "--json", path)
        assert (done.code, done.document["code"]) == (1, "integrity"), done.told()
    assert user.envmedic("data", "update", "--json", packed(tmp_path, content)).code == 0


def test_a_stated_hash_is_held(user: Shell, tmp_path: Path) -> None:
    path = file_of(tmp_path, newer())
    wrong = user.envmedic("data", "update", "--json", path, "--sha256", "0" * 64)
    assert wrong.document["code"] == "integrity"
    right = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    assert user.envmedic("data", "update", "--json", path, "--sha256", right).code == 0


def damage(user: Shell, folder: Path) -> Path:
    """Update, and return the file that was kept."""
    assert user.envmedic("data", "update", file_of(folder.parents[2], newer())).code == 0
    (kept,) = folder.iterdir()
    return kept


def unused(user: Shell, reason: str) -> Done:
    """Assert that the shipped tables are used, and that every command says why."""
    done = user.envmedic("data", "status", "--json")
    assert (done.code, done.document["version"]) == (1, SHIPPED), done.told()
    assert any(reason in item["reason"] for item in done.document["ignored"]), done.told()
    told = user.envmedic("facts", "--host-only")
    assert (told.code, "is not used" in told.err) == (0, True), told.told()
    return done


def test_a_damaged_file_is_not_used_and_that_is_told(user: Shell, folder: Path) -> None:
    kept = damage(user, folder)
    kept.write_bytes(kept.read_bytes()[:-100])
    unused(user, "not what its name says")
    kept.write_bytes(b"x" * (9 << 20))
    unused(user, "more than")


def test_links_fifos_and_files_that_others_may_write_are_not_read(user: Shell, folder: Path, tmp_path: Path) -> None:
    kept = damage(user, folder)
    aside = tmp_path / kept.name
    kept.rename(aside)
    kept.symlink_to(aside)
    unused(user, "symbolic link")
    kept.unlink()
    os.mkfifo(kept)
    unused(user, "no regular file")
    kept.unlink()
    aside.rename(kept)
    kept.chmod(0o666)
    unused(user, "other users may write")
    kept.chmod(0o600)
    assert in_use(user) == f"{SHIPPED}.1"
    folder.chmod(0o777)
    unused(user, "other users may write")
    folder.chmod(0o700)
    real = folder.rename(tmp_path / "real")
    folder.symlink_to(real)
    unused(user, "no directory")
    refused = user.envmedic("data", "update", "--json", file_of(tmp_path, newer(2)))
    assert (refused.code, refused.document["code"]) == (1, "preflight")
    assert len(list(real.iterdir())) == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_files_of_another_user_are_not_used(user: Shell, folder: Path, tmp_path: Path) -> None:
    kept = damage(user, folder)
    os.chown(kept, 12345, -1)
    unused(user, "belongs to another user")
    os.chown(kept, 0, -1)
    os.chown(folder, 12345, -1)
    unused(user, "belongs to another user")
    refused = user.envmedic("data", "update", "--json", file_of(tmp_path, newer(2)))
    assert (refused.code, refused.document["code"]) == (1, "preflight")


def test_an_update_that_is_killed_while_it_writes_leaves_the_tables_as_they_were(
    user: Shell, folder: Path, tmp_path: Path
) -> None:
    damage(user, folder)
    program = tmp_path / "killed.py"
    program.write_text(
        "import os, pathlib, signal, sys\n"
        "from envmedic.cli.main import main\n"
        "pathlib.Path.rename = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    source = file_of(tmp_path, newer(2), "second.json")
    killed = Shell(home=user.home, variables=user.variables, program=(*user.program[:1], str(program)), forked=False)
    assert killed.envmedic("data", "update", source).code == -signal.SIGKILL
    assert len(list(folder.iterdir())) == 2, "the file that was being written lies there"
    assert in_use(user) == f"{SHIPPED}.1"
    assert user.envmedic("data", "update", "--json", source).document["version"] == f"{SHIPPED}.2"
    assert sorted(path.suffix for path in folder.iterdir()) == [".json", ".json"]


def test_old_files_go_and_the_pinned_one_stays(user: Shell, folder: Path, tmp_path: Path) -> None:
    damage(user, folder)
    assert user.envmedic("data", "pin").code == 0
    for number in range(2, 7):
        assert user.envmedic("data", "update", file_of(tmp_path, newer(number))).code == 0
    versions = sorted(path.name.partition("-")[0] for path in folder.glob("*.json"))
    assert versions == [f"{SHIPPED}.{number}" for number in (1, 4, 5, 6)]


def test_every_column_that_rules_read_has_a_form() -> None:
    """Else a data file could bring any text in it."""
    texts = set()
    for name in tables.RENEWABLE:
        for rows in json.loads(tables.read_data_file(f"{name}.json")).values():
            for item in rows if isinstance(rows, list) else ():
                texts |= {key for key, value in item.items() if isinstance(value, str | list | dict)}
    assert texts - table_forms.KNOWN == {"numpy_abi"} - table_forms.KNOWN
