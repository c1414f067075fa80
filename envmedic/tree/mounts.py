"""What is mounted where, from ``/proc/self/mountinfo``."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

_OCTAL = re.compile(rb"\\([0-7]{3})")


@dataclass(frozen=True)
class Mount:
    """One line of mountinfo (proc_pid_mountinfo(5))."""

    device: str
    """Major and minor number, as ``8:1``."""
    root: str
    """The directory of the file system that is mounted; another one than ``/`` for a bind mount or a subvolume."""
    point: str
    filesystem: str
    options: frozenset[str]


def parse(raw: bytes) -> tuple[Mount, ...]:
    """Parse the bytes of a mountinfo file, undoing its octal escapes."""
    return tuple(_mount(line) for line in raw.splitlines() if line)


def mounts() -> tuple[Mount, ...]:
    """Return the mounts of this process's namespace. Raises OSError."""
    return parse(Path("/proc/self/mountinfo").read_bytes())


def is_mount_point(path: Path) -> bool:
    """Whether something is mounted exactly at the real path `path` (bind mounts too)."""
    return any(mount.point == os.fspath(path) for mount in mounts())


def below(path: Path) -> tuple[str, ...]:
    """Return the mount points that lie inside the real path `path`, not at it."""
    inside = os.fspath(path).rstrip("/") + "/"
    return tuple(mount.point for mount in mounts() if mount.point.startswith(inside))


def holding(path: Path) -> Mount | None:
    """Return the mount that the real path `path` lies on; the last one mounted wins."""
    name = os.fspath(path)
    found: Mount | None = None
    for mount in mounts():
        # A later mount at the same point covers an earlier one, hence >= below.
        covers = mount.point in {"/", name} or name.startswith(mount.point + "/")
        if covers and (found is None or len(mount.point) >= len(found.point)):
            found = mount
    return found


def path_in_filesystem(path: Path) -> str | None:
    """Return the real path `path` as the root of its file system names it; None where that is the same path.

    Through a bind mount, as of a container, this is the end of the path by which the host knows it. Raises OSError.
    """
    mount = holding(path)
    if mount is None or mount.root == "/":
        return None
    below_it = os.fspath(path)[len(mount.point) :] if mount.point != "/" else os.fspath(path)
    return mount.root + below_it


def _mount(line: bytes) -> Mount:
    fields, _, rest = line.partition(b" - ")
    parts = fields.split(b" ")
    filesystem, _, tail = rest.partition(b" ")
    super_options = tail.split(b" ")[-1]
    options = {*parts[5].split(b","), *(b"super:" + name for name in super_options.split(b","))}
    return Mount(
        device=os.fsdecode(parts[2]),
        root=_unescaped(parts[3]),
        point=_unescaped(parts[4]),
        filesystem=os.fsdecode(filesystem),
        options=frozenset(os.fsdecode(name) for name in options),
    )


def _unescaped(name: bytes) -> str:
    return os.fsdecode(_OCTAL.sub(lambda match: bytes([int(match[1], 8)]), name))
