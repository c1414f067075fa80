"""A name that leads elsewhere in the moment between a look and its use, and modes under a umask that hides nothing."""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from envmedic.engine.clone.clone import clone
from envmedic.engine.clone.disk_space import measure
from envmedic.engine.fs import scratch, syscalls, trash
from envmedic.engine.fs.durable import make_directory, write_whole
from envmedic.engine.fs.file_copy import make_private
from envmedic.engine.fs.safe_paths import replace_file
from envmedic.engine.generations.tree_cost import held_alone
from envmedic.engine.stage import relocate, shebangs
from envmedic.engine.store import marker, uv_lock
from envmedic.engine.store.context import EventLog
from envmedic.engine.store.layout import Store, TransactionDirectory
from envmedic.engine.store.lock import holder, locked
from envmedic.engine.transaction.preflight import _existing
from envmedic.errors import PreflightError
from envmedic.model.events import Event, Notice
from envmedic.model.registries.modes import CloneMode
from envmedic.tree.fingerprint import MARKER, UV_LOCK
from tests.support.races import at


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "secret"
    path.write_text("secret")
    return path


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Two levels, since files in the root are always copied."""
    (tmp_path / "tree" / "lib").mkdir(parents=True)
    (tmp_path / "tree" / "lib" / "file").write_text("own")
    return tmp_path / "tree"


@pytest.fixture
def _no_umask() -> Iterator[None]:
    mask = os.umask(0)
    yield
    os.umask(mask)


def lead(path: Path, target: Path) -> Callable[[], None]:
    def swap() -> None:
        path.unlink()
        path.symlink_to(target)

    return swap


@pytest.mark.parametrize(("mode", "call"), [("link", "link"), ("copy", "open")])
def test_a_clone_takes_nothing_from_where_a_link_leads_that_came_meanwhile(
    tree: Path, secret: Path, monkeypatch: pytest.MonkeyPatch, mode: CloneMode, call: str
) -> None:
    at(monkeypatch, call, "file", lead(tree / "lib" / "file", secret))
    with suppress(OSError):  # refused
        clone(tree, tree.with_name("clone"), mode)
    cloned = tree.with_name("clone") / "lib" / "file"
    assert cloned.is_symlink() or not cloned.exists()
    assert secret.stat().st_nlink == 1


def test_a_file_gets_no_copy_of_what_a_link_leads_to_that_came_meanwhile(
    tree: Path, secret: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret.with_name("twin").hardlink_to(secret)
    at(monkeypatch, "open", "file", lead(tree / "lib" / "file", secret))
    with pytest.raises(OSError, match="symbolic links"):
        make_private(tree / "lib" / "file")
    assert (tree / "lib" / "file").is_symlink()


def test_a_private_copy_is_written_to_no_file_that_came_meanwhile(
    tree: Path, secret: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tree / "lib" / "twin").hardlink_to(tree / "lib" / "file")
    planted = tree / "lib" / "file.envmedic-private"
    at(monkeypatch, "open", planted.name, lambda: planted.hardlink_to(secret))
    with pytest.raises(FileExistsError):
        make_private(tree / "lib" / "file")
    assert secret.read_text() == "secret"


def test_a_durable_file_is_written_to_none_that_came_meanwhile(
    tmp_path: Path, secret: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted = tmp_path / ".state.tmp"
    at(monkeypatch, "open", planted.name, lambda: planted.hardlink_to(secret))
    with pytest.raises(FileExistsError):
        write_whole(tmp_path / "state", b"new")
    assert secret.read_text() == "secret"


@pytest.mark.parametrize("place", [".", "inner"])
def test_a_tree_is_deleted_through_no_link_that_came_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    (tmp_path / "victim").mkdir()
    (tmp_path / "victim" / "file").touch()
    gone = trash.discard(_with_directory(tmp_path / "tree"), tmp_path / "trash")
    assert gone is not None
    directory = gone / place

    def swap() -> None:
        directory.rename(tmp_path / "aside")
        directory.symlink_to(tmp_path / "victim")

    at(monkeypatch, "open", directory.name, swap)
    with pytest.raises(OSError, match="Not a directory"):
        trash.empty(tmp_path / "trash")
    assert (tmp_path / "victim" / "file").exists()


def _with_directory(path: Path) -> Path:
    (path / "inner").mkdir(parents=True)
    (path / "inner" / "file").touch()
    return path


@pytest.mark.usefixtures("_no_umask")
def test_no_umask_lets_others_write_what_envmedic_makes(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    replace_file(tmp_path / "tree", "a/b/file", b"")
    marker.write(tmp_path / "tree", "transaction")
    make_directory(tmp_path / "private")
    write_whole(tmp_path / "state", b"")
    with _existing(tmp_path / "work") as work:
        modes = [
            stat.S_IMODE(path.stat().st_mode)
            for path in (
                work, tmp_path / "private", tmp_path / "state", tmp_path / "tree" / "a" / "b",
                tmp_path / "tree" / "a" / "b" / "file", tmp_path / "tree" / MARKER,
            )
        ]  # fmt: skip
    assert [oct(mode) for mode in modes] == ["0o700", "0o700", "0o600", "0o755", "0o644", "0o644"]


def test_a_special_file_keeps_its_mode_under_any_umask(tree: Path) -> None:
    os.mkfifo(tree / "lib" / "pipe")
    (tree / "lib" / "pipe").chmod(0o666)
    clone(tree, tree.with_name("clone"), "copy")
    assert stat.S_IMODE((tree.with_name("clone") / "lib" / "pipe").stat().st_mode) == 0o666


def test_what_links_lead_to_counts_as_no_part_of_a_tree(tree: Path) -> None:
    big = tree.with_name("big")
    big.mkdir()
    (big / "file").write_bytes(bytes(1 << 20))
    (tree / "lib" / "directory").symlink_to(big)
    (tree / "lib" / "link").symlink_to(big / "file")
    size = measure(tree, "copy")
    assert (size.files, size.directories, size.others, size.copied_files) == (1, 1, 2, 1)
    assert size.copied_allocated < 1 << 20


def test_an_owner_s_file_in_the_place_of_a_directory_keeps_its_mode(
    tmp_path: Path, secret: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = trash.discard(_with_directory(tmp_path / "tree"), tmp_path / "trash")
    assert gone is not None
    secret.chmod(0o400)

    def swap() -> None:
        (gone / "inner").rename(tmp_path / "aside")
        (gone / "inner").hardlink_to(secret)

    at(monkeypatch, "open", "inner", swap)
    with pytest.raises(OSError, match="Not a directory"):
        trash.empty(tmp_path / "trash")
    assert stat.S_IMODE(secret.stat().st_mode) == 0o400


def test_what_links_lead_to_is_no_part_of_what_pruning_frees(tree: Path) -> None:
    big = tree.with_name("big")
    big.mkdir()
    (big / "file").write_bytes(bytes(1 << 20))
    (tree / "directory").symlink_to(big)
    (tree / "link").symlink_to(big / "file")
    assert held_alone(tree) < 1 << 20


def test_relocation_writes_nothing_where_links_lead(tree: Path) -> None:
    final, outside = Path("/final/env"), tree.with_name("outside")
    outside.mkdir()
    for name in ("script", "file"):
        (outside / name).write_text(f"#!{tree}/bin/python\n")
    (tree / "bin").mkdir()
    (tree / "bin" / "own").write_text(f"#!{tree}/bin/python\n")
    (tree / "bin" / "link").symlink_to(outside / "script")
    (tree / "etc").symlink_to(outside)
    assert relocate.rewrite(tree, tree, final).rewritten == ("bin/own",)
    assert (outside / "script").read_text() == f"#!{tree}/bin/python\n"
    assert (tree / "bin" / "link").is_symlink()


def test_a_script_elsewhere_is_not_the_environment_s(tmp_path: Path) -> None:
    for name in ("old", "live"):
        (tmp_path / name / "bin").mkdir(parents=True)
    (tmp_path / "script").write_text(f"#!{tmp_path}/live/bin/python3.99\n")
    (tmp_path / "live" / "bin" / "link").symlink_to(tmp_path / "script")
    assert shebangs.check(tmp_path / "live", tmp_path / "old", tmp_path / "staging").status == "pass"


@pytest.mark.parametrize("number", [syscalls._OPENAT2_NUMBER, 99999], ids=["openat2", "step by step"])
@pytest.mark.parametrize("relative", ["link", "link/below", "lib/file", "lib/pipe", ".."])
def test_a_directory_is_opened_through_no_link(
    tree: Path, monkeypatch: pytest.MonkeyPatch, number: int, relative: str
) -> None:
    if number != syscalls._OPENAT2_NUMBER and relative == "..":
        pytest.skip("only the kernel knows what is beneath")
    (tree / "lib" / "below").mkdir()
    (tree / "link").symlink_to("lib")
    os.mkfifo(tree / "lib" / "pipe")
    monkeypatch.setattr(syscalls, "_OPENAT2_NUMBER", number)
    top = os.open(tree, os.O_RDONLY)
    try:
        os.close(syscalls.open_beneath(top, "lib/below"))
        with pytest.raises(OSError, match=r"symbolic links|Not a directory|cross-device"):
            os.close(syscalls.open_beneath(top, relative))
    finally:
        os.close(top)


def test_what_is_no_directory_is_no_left_over_of_a_probe(tree: Path) -> None:
    (tree / ".probe-file").touch()
    (tree / ".probe-link").symlink_to("lib")
    assert scratch.left_over(tree, ".probe-") == ()
    (tree / ".probe-directory").mkdir()
    assert scratch.left_over(tree, ".probe-") == (tree / ".probe-directory",)


def test_a_lock_or_log_is_written_to_no_file_that_a_link_leads_to(tree: Path, secret: Path) -> None:
    store = Store.of(tree)
    with locked(store):
        pass
    store.lock.unlink()
    store.lock.symlink_to(secret)
    with pytest.raises(PreflightError), locked(store):
        pass
    secret.write_text(f"{os.getpid()}\n")
    with secret.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert holder(store) is None
    directory = TransactionDirectory(tree)
    directory.events.symlink_to(secret)
    with pytest.raises(OSError, match="symbolic links"):
        EventLog(directory)
    assert secret.read_text() == f"{os.getpid()}\n"


def test_a_log_that_two_processes_write_keeps_the_lines_of_both(tree: Path) -> None:
    directory = TransactionDirectory(tree)
    logs = [EventLog(directory) for _ in range(2)]
    event = Event(transaction=tree.name, sequence=1, time=0.0, data=Notice(code="told", message="x"))
    for log in (*logs, *logs):
        log(event)
    for log in logs:
        log.close()
    assert len(directory.events.read_bytes().splitlines()) == 4


@pytest.mark.parametrize("kind", ["link", "file"])
def test_uv_s_lock_is_looked_for_in_no_tree_that_was_exchanged_for_something_else(tree: Path, kind: str) -> None:
    place = tree / kind
    place.symlink_to("lib") if kind == "link" else place.touch()
    with pytest.raises(OSError, match=r"symbolic links|Not a directory"), uv_lock._root(place):
        pass


def test_uv_s_lock_is_no_file_that_a_link_leads_to(tree: Path, secret: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = tree / UV_LOCK
    lock.symlink_to(secret)
    with uv_lock._root(tree) as root:
        assert uv_lock._existing(root) is None
        lock.unlink()
        lock.touch()
        at(monkeypatch, "open", UV_LOCK, lead(lock, secret))
        with pytest.raises(OSError, match="symbolic links"):
            uv_lock._existing(root)
