"""Exchanging two directories, by one call or by two renames, and finding out beforehand."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import pytest

from envmedic.engine.fs import exchange, syscalls
from tests.engine_low.support import as_user, needs_seccomp, own_mounts, run_code, write

_PROBE = """
from dataclasses import asdict
from envmedic.engine.fs.exchange import probe_exchange
prefix = Path(sys.argv[1])
workdir = prefix.parent / ".envmedic"
def probe():
    before = sorted(map(str, prefix.parent.rglob("*")))
    found = asdict(probe_exchange(prefix, workdir))
    assert sorted(map(str, prefix.parent.rglob("*"))) == before
    return found
"""


@pytest.fixture
def pair(open_tmp: Path) -> tuple[Path, Path]:
    """A live environment and a clone in a directory beside it."""
    write(open_tmp / "env" / "who", "live")
    write(open_tmp / ".envmedic" / "tx" / "env" / "who", "clone")
    return open_tmp / "env", open_tmp / ".envmedic" / "tx" / "env"


def _who(directory: Path) -> str:
    return (directory / "who").read_text(encoding="utf-8")


def test_an_exchange_swaps_and_a_second_one_swaps_back(pair: tuple[Path, Path]) -> None:
    live, clone = pair
    exchange.exchange(live, clone)
    assert (_who(live), _who(clone)) == ("clone", "live")
    exchange.exchange(live, clone)
    assert (_who(live), _who(clone)) == ("live", "clone")


def test_a_reader_never_misses_the_path_during_exchanges(pair: tuple[Path, Path]) -> None:
    live, clone = pair
    missed, looks, stop = 0, 0, threading.Event()

    def look() -> None:
        nonlocal missed, looks
        while not stop.is_set():
            missed += not (live / "who").exists()
            looks += 1

    reader = threading.Thread(target=look)
    reader.start()
    for _ in range(2000):
        exchange.exchange(live, clone)
    stop.set()
    reader.join()
    assert looks > 0
    assert missed == 0


def test_exchanging_with_a_missing_path_changes_nothing(pair: tuple[Path, Path]) -> None:
    live, _ = pair
    with pytest.raises(FileNotFoundError) as caught:
        exchange.exchange(live, live.parent / "none")
    assert caught.value.errno == errno.ENOENT
    assert _who(live) == "live"


def test_a_rename_never_replaces(pair: tuple[Path, Path]) -> None:
    live, clone = pair
    (clone / "who").unlink()
    with pytest.raises(FileExistsError):
        exchange.rename_noreplace(live, clone)
    assert _who(live) == "live"


def test_renames_work_on_kernels_without_flags(pair: tuple[Path, Path]) -> None:
    needs_seccomp()
    code = """
from envmedic.engine.fs import exchange
seccomp.deny("renameat2", errno.ENOSYS)
live, clone = map(Path, sys.argv[1:])
try:
    exchange.rename_noreplace(live, clone)
except FileExistsError as error:
    result = [error.errno]
exchange.rename_noreplace(live, live.parent / "spare")
exchange.rename_noreplace(clone, live)
result.append((live / "who").read_text())
"""
    assert run_code(code, *pair) == [errno.EEXIST, "clone"]


def test_directories_and_file_systems_are_synced(pair: tuple[Path, Path]) -> None:
    exchange.sync_directory(pair[0])
    exchange.sync_filesystem(pair[0])
    with pytest.raises(NotADirectoryError):
        exchange.sync_directory(pair[0] / "who")


def test_the_system_call_works_without_the_library_function(
    pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    class OldLibrary:
        syscall = syscalls._libc().syscall

    monkeypatch.setattr(syscalls, "_libc", OldLibrary)
    exchange.exchange(*pair)
    assert _who(pair[0]) == "clone"


def test_the_file_system_type_is_read() -> None:
    assert syscalls.filesystem_type("/proc") == 0x9FA0
    with pytest.raises(FileNotFoundError):
        syscalls.filesystem_type("/none/at/all")


def test_a_probe_finds_the_atomic_way_and_leaves_nothing(pair: tuple[Path, Path]) -> None:
    found = run_code(_PROBE + "result = probe()", pair[0])
    assert found == {"method": "exchange", "reason": "", "code": ""}


def test_a_probe_falls_back_to_renames(pair: tuple[Path, Path]) -> None:
    needs_seccomp()
    code = (
        _PROBE
        + f'seccomp.deny("renameat2", errno.EINVAL, argument=4, bits={syscalls.RENAME_EXCHANGE})\nresult = probe()'
    )
    found = run_code(code, pair[0])
    assert (found["method"], found["code"]) == ("two-renames", "unsupported")


def test_a_mount_point_is_refused(pair: tuple[Path, Path]) -> None:
    code = (
        _PROBE
        + """
import subprocess
subprocess.run(["mount", "--bind", prefix, prefix], check=True)
result = probe()
from envmedic.engine.fs.exchange import exchange
try:
    exchange(prefix, workdir / "tx" / "env")
except OSError as error:
    result["real"] = error.errno
"""
    )
    found = run_code(code, pair[0], wrap=own_mounts())
    assert (found["method"], found["code"], found["real"]) == (None, "mount-point", errno.EBUSY)


def test_a_staging_directory_on_another_file_system_is_refused(pair: tuple[Path, Path]) -> None:
    code = (
        _PROBE
        + """
import subprocess
subprocess.run(["mount", "-t", "tmpfs", "tmpfs", workdir], check=True)
result = probe()
"""
    )
    found = run_code(code, pair[0], wrap=own_mounts())
    assert (found["method"], found["code"]) == (None, "cross-device")


_OVERLAY = """
import subprocess
base = Path(sys.argv[1])
subprocess.run(["mount", "-t", "tmpfs", "tmpfs", base], check=True)
lower, upper, work, merged = (base / name for name in ("lower", "upper", "work", "merged"))
for path in (lower / "image", upper, work, merged):
    path.mkdir(parents=True)
(lower / "image" / "who").write_text("image")
options = f"lowerdir={lower},upperdir={upper},workdir={work}" + (",userxattr" if os.getuid() else "")
done = subprocess.run(["mount", "-t", "overlay", "overlay", "-o", options, merged], check=False)
if done.returncode:
    result = None
else:
    (merged / "made").mkdir()
    (merged / ".envmedic").mkdir()
    from envmedic.engine.fs.exchange import exchange, probe_exchange
    result = {}
    for name in ("image", "made"):
        found = probe_exchange(merged / name, merged / ".envmedic")
        left = [sorted(os.listdir(merged)), os.listdir(merged / ".envmedic"), (merged / "image" / "who").read_text()]
        (merged / ".envmedic" / name).mkdir()
        try:
            exchange(merged / name, merged / ".envmedic" / name)
            real = "exchange"
        except OSError as error:
            real = error.errno
        (merged / ".envmedic" / name).rmdir() if os.path.isdir(merged / ".envmedic" / name) else None
        result[name] = [found.method, found.code, real, left]
"""


def test_an_environment_of_an_image_layer_is_told_from_one_made_later(open_tmp: Path) -> None:
    found = run_code(_OVERLAY, open_tmp, wrap=own_mounts())
    if found is None:
        pytest.skip("overlays are not allowed here")
    untouched = [[".envmedic", "image", "made"], [], "image"]
    assert found["image"] == [None, "image-layer", errno.EXDEV, untouched]
    method, _, real, left = found["made"]
    assert left == untouched
    assert (method, real) in {
        ("exchange", "exchange"),
        (None, errno.EXDEV),
    }  # the second where layers keep no attributes
    if os.geteuid() == 0:
        assert method == "exchange"


def test_missing_permission_on_the_prefix_or_its_parent_is_found(pair: tuple[Path, Path]) -> None:
    wrap = as_user()
    live, _ = pair
    if not wrap.command:
        live.parent.chmod(0o555)
    found = run_code(_PROBE + "result = probe()", live, wrap=wrap)
    live.parent.chmod(0o755)
    assert (found["method"], found["code"]) == (None, "permission")
    assert found["reason"] == f"no write permission on {live if wrap.command else live.parent}"
