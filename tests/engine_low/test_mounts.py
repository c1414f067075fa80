"""Reading mountinfo, with names that it escapes."""

from __future__ import annotations

from pathlib import Path

from envmedic.tree import mounts
from tests.engine_low.support import own_mounts, run_code

LINE = rb"36 35 98:0 /mnt1 /mnt\0402\134x\012y rw,noatime master:1 - ext3 /dev/root rw,errors=continue"


def test_octal_escapes_are_undone() -> None:
    (found,) = mounts.parse(LINE + b"\n")
    assert found.point == "/mnt 2\\x\ny"
    assert found.filesystem == "ext3"
    assert {"rw", "noatime", "super:errors=continue"} <= found.options


def test_the_root_is_a_mount_point_and_holds_what_is_not_mounted() -> None:
    assert mounts.is_mount_point(Path("/"))
    holder = mounts.holding(Path("/proc/self"))
    assert holder is not None
    assert holder.filesystem == "proc"


def test_a_mount_with_odd_name_is_found(open_tmp: Path) -> None:
    odd = open_tmp / "a b\nc\\d é"
    odd.mkdir()
    code = """
import subprocess
from envmedic.tree import mounts
path = Path(sys.argv[1])
subprocess.run(["mount", "-t", "tmpfs", "tmpfs", sys.argv[1]], check=True)
result = [mounts.is_mount_point(path), mounts.below(path.parent), mounts.below(path), mounts.holding(path / "x").filesystem]
"""
    found = run_code(code, odd, wrap=own_mounts())
    assert found == [True, [str(odd)], [], "tmpfs"]
    assert not mounts.is_mount_point(odd)


def test_a_path_below_a_bind_mount_is_named_by_its_file_system(open_tmp: Path) -> None:
    (open_tmp / "users" / "env").mkdir(parents=True)
    (open_tmp / "work").mkdir()
    code = """
import subprocess
from envmedic.tree import mounts
users, work = map(Path, sys.argv[1:])
subprocess.run(["mount", "--bind", str(users), str(work)], check=True)
result = [mounts.path_in_filesystem(path) for path in (work / "env", Path("/proc/self"))]
"""
    found = run_code(code, open_tmp / "users", open_tmp / "work", wrap=own_mounts())
    assert str(open_tmp / "users" / "env").endswith(found[0])
    assert found[0].endswith("/users/env")
    assert found[1] is None
