"""Reading of a lock that a command names; one of uv is exported by uv first."""

from __future__ import annotations

import shlex
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from envmedic import proc
from envmedic.errors import InputError
from envmedic.installers.uv import find_uv
from envmedic.locks import reading
from envmedic.model.lock import Lock

_TIMEOUT_S = 120.0


def read_lock(path: Path) -> Lock:
    """Return the lock at `path`; one of uv as uv exports it: with its default groups, without the project itself.

    Raises InputError where it is none that can be read or exported, RepairPackageMissing without uv.
    """
    # of another name, `read` says what to do: uv looks for that one
    if reading.project_tool(path) != "uv" or path.name != "uv.lock":
        return reading.read(path)
    with exported(path) as output:
        return msgspec.structs.replace(reading.read(output), path=str(path))


@contextmanager
def exported(path: Path) -> Iterator[Path]:
    """Export the ``uv.lock`` at `path` as a pylock document, which is there within the context.

    Raises InputError where uv cannot export it, RepairPackageMissing without uv.
    """
    folder = path.resolve().parent
    with tempfile.TemporaryDirectory(prefix="envmedic-export-") as name:
        output = Path(name) / "pylock.toml"
        # frozen: neither the lock nor an environment is touched; another Python than the project's, which is not started
        argv = [find_uv(), "export", "--frozen", "--format=pylock.toml", "--no-header", "--quiet"]
        argv += ["--color=never", "--no-python-downloads", f"--python={sys.executable}", f"--project={folder}"]
        result = proc.run([*argv, "-o", str(output)], env={"VIRTUAL_ENV": None}, timeout_s=_TIMEOUT_S)
        if result.returncode != 0:
            raise InputError(
                f"{path} cannot be exported by uv",
                cause=result.stderr.strip().rpartition("\n")[2] or None,
                hint=f"Export it yourself, and give that: {shlex.join(['uv', *argv[1:5], '-o', 'pylock.toml'])}",
            )
        yield output
