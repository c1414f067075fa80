"""Clones: faithful, independent where tools edit in place, honest about what they could not keep."""

from __future__ import annotations

import os
import socket
import stat
import threading
from pathlib import Path

import pytest

from envmedic.engine.clone import directory_entries
from envmedic.engine.clone.clone import clone, make_private, probe_modes
from envmedic.model.registries.modes import CloneMode
from envmedic.tree import fingerprint
from tests.engine_low.support import as_user, make_prefix, needs_seccomp, run_code, write

SITE = Path("lib/python3.11/site-packages")
MODES: tuple[CloneMode, ...] = ("link", "copy", "reflink")


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("mode", MODES)
def test_a_clone_equals_its_original_in_content_modes_owners_and_times(
    prefix: Path, open_tmp: Path, mode: CloneMode, threads: int
) -> None:
    (prefix / "lib").chmod(0o2751)
    before = fingerprint.manifest(prefix)
    report = clone(prefix, open_tmp / "clone", mode, threads=threads)
    assert fingerprint.manifest(open_tmp / "clone") == before
    assert fingerprint.manifest(prefix) == before
    assert (open_tmp / "clone").stat().st_mtime_ns == prefix.stat().st_mtime_ns
    kinds = [content.entry.kind for content in before.values()]
    assert (report.files, report.directories, report.symlinks) == (kinds.count("f"), kinds.count("d"), kinds.count("l"))
    assert report.linked + report.copied + report.reflinked == report.files


def test_files_that_tools_edit_in_place_are_not_shared(prefix: Path, open_tmp: Path) -> None:
    write(prefix / "conda-meta" / "history", "x\n")
    write(prefix / SITE / "easy-install.pth", "x\n")
    write(prefix / SITE / "tool.egg-link", "x\n")
    write(prefix / SITE / "old.egg-info", "x\n")
    write(prefix / SITE / "package0" / "patched.so", "x\n")
    clone(prefix, open_tmp / "clone", "link", private={f"{SITE}/package0/patched.so"})
    shared = {
        os.fspath(path.relative_to(prefix))
        for path in prefix.rglob("*")
        if path.is_file() and not path.is_symlink() and path.samefile(open_tmp / "clone" / path.relative_to(prefix))
    }
    assert shared == {f"{SITE}/package{number}/{name}" for number in range(3) for name in ("__init__.py", "native.so")}


def test_editing_a_clone_in_place_leaves_the_original_alone(prefix: Path, open_tmp: Path) -> None:
    before = fingerprint.manifest(prefix)
    clone(prefix, open_tmp / "clone", "link")
    for relative in ("pyvenv.cfg", "bin/tool", f"{SITE}/local.pth", f"{SITE}/package0-1.0.dist-info/licenses/LICENSE"):
        with (open_tmp / "clone" / relative).open("a", encoding="utf-8") as stream:
            stream.write("edited")
    make_private(open_tmp / "clone" / SITE / "package0" / "native.so")
    write(open_tmp / "clone" / SITE / "package0" / "native.so", "edited")
    assert fingerprint.manifest(prefix) == before


def test_making_a_file_private_keeps_what_stat_shows(prefix: Path, open_tmp: Path) -> None:
    clone(prefix, open_tmp / "clone", "link")
    path = open_tmp / "clone" / SITE / "package0" / "native.so"
    before = path.stat()
    make_private(path)
    after = path.stat()
    assert after.st_ino != before.st_ino
    assert (after.st_mode, after.st_mtime_ns, after.st_size) == (before.st_mode, before.st_mtime_ns, before.st_size)
    make_private(path)
    assert path.stat().st_ino == after.st_ino
    assert sorted(item.name for item in path.parent.iterdir()) == ["__init__.py", "native.so"]


def test_only_regular_files_can_be_made_private(prefix: Path) -> None:
    with pytest.raises(OSError, match=r"regular file|symbolic"):
        make_private(prefix / "bin" / "python")


@pytest.mark.parametrize("mode", MODES)
def test_hard_links_between_copied_files_are_kept(prefix: Path, open_tmp: Path, mode: CloneMode) -> None:
    os.link(prefix / "bin" / "tool", prefix / "bin" / "tool3")
    os.link(prefix / "bin" / "tool", prefix / "etc" / "tool")
    before = fingerprint.manifest(prefix)
    report = clone(prefix, open_tmp / "clone", mode)
    copies = [open_tmp / "clone" / name for name in ("bin/tool", "bin/tool3", "etc/tool")]
    assert len({path.stat().st_ino for path in copies}) == 1
    assert not copies[0].samefile(prefix / "bin" / "tool")
    assert fingerprint.manifest(open_tmp / "clone") == before
    assert report.files == sum(content.entry.kind == "f" for content in before.values())


def test_a_sparse_file_stays_sparse_when_copied(prefix: Path, open_tmp: Path) -> None:
    path = prefix / "bin" / "sparse"
    with path.open("wb") as stream:
        stream.write(b"begin")
        stream.seek(8 << 20)
        stream.write(b"middle")
        stream.truncate(16 << 20)
    if path.stat().st_blocks * 512 >= path.stat().st_size:
        pytest.skip("this file system keeps no holes")
    clone(prefix, open_tmp / "clone", "link")
    copy = open_tmp / "clone" / "bin" / "sparse"
    assert copy.read_bytes() == path.read_bytes()
    assert copy.stat().st_blocks <= path.stat().st_blocks + 64


def test_extended_attributes_are_kept(prefix: Path, open_tmp: Path) -> None:
    try:
        os.setxattr(prefix / "bin" / "tool", "user.origin", b"wheel")
        os.setxattr(prefix / "etc", "user.origin", b"wheel")
    except OSError as error:
        pytest.skip(f"this file system has no user attributes: {error}")
    clone(prefix, open_tmp / "clone", "link")
    assert os.getxattr(open_tmp / "clone" / "bin" / "tool", "user.origin") == b"wheel"
    assert os.getxattr(open_tmp / "clone" / "etc", "user.origin") == b"wheel"


def test_fifos_and_sockets_are_made_again(prefix: Path, open_tmp: Path) -> None:
    os.mkfifo(prefix / "etc" / "fifo", 0o640)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.fspath(prefix / "etc" / "socket"))
    report = clone(prefix, open_tmp / "clone", "link")
    assert report.special == 2
    assert stat.S_ISFIFO((open_tmp / "clone/etc/fifo").stat().st_mode)
    assert stat.S_IMODE((open_tmp / "clone/etc/fifo").stat().st_mode) == 0o640
    assert stat.S_ISSOCK((open_tmp / "clone/etc/socket").stat().st_mode)


def test_names_of_any_bytes_survive(prefix: Path, open_tmp: Path) -> None:
    name = os.fsdecode(b"\xff new\nline '\"")
    write(prefix / SITE / name / name, "x")
    clone(prefix, open_tmp / "clone", "link")
    assert (open_tmp / "clone" / SITE / name / name).read_text(encoding="utf-8") == "x"


def test_the_target_must_not_exist(prefix: Path, open_tmp: Path) -> None:
    (open_tmp / "clone").mkdir()
    with pytest.raises(FileExistsError):
        clone(prefix, open_tmp / "clone", "link")


def test_progress_comes_in_the_calling_thread_and_ends_with_the_number_of_files(prefix: Path, open_tmp: Path) -> None:
    seen: list[tuple[int, int]] = []
    report = clone(prefix, open_tmp / "clone", "link", on_progress=lambda n: seen.append((n, threading.get_ident())))
    assert seen[-1] == (report.files, threading.get_ident())
    assert {ident for _, ident in seen} == {threading.get_ident()}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_a_clone_stops_when_progress_raises(
    prefix: Path, open_tmp: Path, error: type[BaseException], threads: int
) -> None:
    def stop(_: int) -> None:
        raise error

    with pytest.raises(error):
        clone(prefix, open_tmp / "clone", "link", on_progress=stop, threads=threads)
    assert threading.active_count() == 1
    assert threads > 1 or list((open_tmp / "clone").iterdir()) == []


@pytest.mark.parametrize("threads", [1, 2])
def test_an_error_in_any_thread_surfaces(open_tmp: Path, threads: int) -> None:
    make_prefix(open_tmp / "env")
    secret = write(open_tmp / "env" / "etc" / "secret", "x", mode=0)
    (open_tmp / "env" / "etc").chmod(0o755)
    code = f"""
import threading
from envmedic.engine.clone.clone import clone
try:
    clone(Path(sys.argv[1]), Path(sys.argv[2]), "link", threads={threads})
except PermissionError as error:
    result = [error.filename, threading.active_count()]
"""
    open_tmp.chmod(0o777)
    assert run_code(code, open_tmp / "env", open_tmp / "clone", wrap=as_user()) == [secret.name, 1]


def test_probing_leaves_nothing_and_finds_a_way(prefix: Path, open_tmp: Path) -> None:
    before = fingerprint.manifest(open_tmp)
    found = probe_modes(prefix, open_tmp)
    assert found["copy"] == ""
    assert {path: content.sha256 for path, content in fingerprint.manifest(open_tmp).items()} == {
        path: content.sha256 for path, content in before.items()
    }


def test_another_file_system_refuses_links_with_its_reason(prefix: Path) -> None:
    elsewhere = Path("/dev/shm")
    if not os.access(elsewhere, os.W_OK) or elsewhere.stat().st_dev == prefix.stat().st_dev:
        pytest.skip("no second file system at /dev/shm")
    found = probe_modes(prefix, elsewhere)
    assert "EXDEV" in found["link"]
    assert found["reflink"]


def test_links_that_are_protected_or_too_many_become_copies_and_are_counted(prefix: Path, open_tmp: Path) -> None:
    needs_seccomp()
    code = """
from envmedic.engine.clone.clone import clone
seccomp.deny("linkat", errno.EMLINK)
report = clone(Path(sys.argv[1]), Path(sys.argv[2]), "link")
result = [report.linked, len(report.lost["links"]), report.copied == report.files]
"""
    assert run_code(code, prefix, open_tmp / "clone") == [0, 6, True]
    assert fingerprint.manifest(open_tmp / "clone") == fingerprint.manifest(prefix)


def test_another_users_environment_is_copied_where_links_are_protected(prefix: Path, open_tmp: Path) -> None:
    wrap = as_user()
    if not wrap.command:
        pytest.skip("only root can make another user's environment")
    if Path("/proc/sys/fs/protected_hardlinks").read_text(encoding="ascii").strip() != "1":
        pytest.skip("hard links are not protected on this host")
    open_tmp.chmod(0o777)
    code = """
from envmedic.engine.clone.clone import clone, probe_modes
source, target = map(Path, sys.argv[1:])
report = clone(source, target, "link")
result = [probe_modes(source, target.parent)["link"], report.linked, len(report.lost["links"])]
result += [len(report.lost["ownership"]) == report.files + report.directories + report.symlinks + 1]
"""
    reason, linked, fallbacks, lost = run_code(code, prefix, open_tmp / "clone", wrap=wrap)
    assert "EPERM" in reason
    assert (linked, fallbacks, lost) == (0, 6, True)
    assert (open_tmp / "clone" / "bin" / "tool").read_bytes() == (prefix / "bin" / "tool").read_bytes()


def test_root_keeps_the_owner_of_every_entry(prefix: Path, open_tmp: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    for path in [prefix, *prefix.rglob("*")]:
        os.chown(path, 1234, 5678, follow_symlinks=False)
    (prefix / "bin" / "tool").chmod(0o4755)
    before = fingerprint.manifest(prefix)
    clone(prefix, open_tmp / "clone", "link")
    assert fingerprint.manifest(open_tmp / "clone") == before
    assert (open_tmp / "clone").stat().st_uid == 1234


def test_files_are_copied_where_the_kernel_has_no_range_copies(prefix: Path, open_tmp: Path) -> None:
    needs_seccomp()
    code = """
from envmedic.engine.clone.clone import clone
seccomp.deny("copy_file_range", errno.ENOSYS)
result = clone(Path(sys.argv[1]), Path(sys.argv[2]), "copy").copied
"""
    write(prefix / "bin" / "large", "0123456789abcdef" * (1 << 17))
    assert run_code(code, prefix, open_tmp / "clone") > 0
    assert fingerprint.manifest(open_tmp / "clone") == fingerprint.manifest(prefix)


def test_entries_that_vanish_after_they_were_listed_are_counted(
    prefix: Path, open_tmp: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = prefix / SITE / "package1"
    link = directory_entries._Directory._link

    def remove_then_link(self: directory_entries._Directory, name: str) -> None:
        if self._job.path.endswith("package1/"):
            for path in package.iterdir():
                path.unlink()
        link(self, name)

    monkeypatch.setattr(directory_entries._Directory, "_link", remove_then_link)
    report = clone(prefix, open_tmp / "clone", "link", threads=1)
    assert report.lost == {"vanished": (f"{SITE}/package1/__init__.py", f"{SITE}/package1/native.so")}
    assert report.files == sum(
        content.entry.kind == "f" for content in fingerprint.manifest(open_tmp / "clone").values()
    )
