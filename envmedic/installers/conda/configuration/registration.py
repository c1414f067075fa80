"""The user's list of conda environments, ``~/.conda/environments.txt``, to which conda adds each new one.

https://docs.conda.io/projects/conda/en/stable/user-guide/tasks/manage-environments.html
"""

from __future__ import annotations

import os
from pathlib import Path

from envmedic.owner import owner


def register(prefix: Path, home: Path, *, has_conda: bool) -> bool:
    """Add `prefix` to the list in `home`; returns whether the list has it now.

    A missing list is created only for users who have conda. Raises OSError if it cannot be read or written.
    """
    file = home / ".conda" / "environments.txt"
    if any(path.exists() and owner(path) is not None for path in (home, file.parent)):
        return False  # root's HOME may be another user's
    if not file.exists():
        if not has_conda:
            return False
        file.parent.mkdir(exist_ok=True)
    _append(file, os.path.normpath(prefix))
    return True


def _append(file: Path, line: str) -> None:
    """Append a line in a single write: with O_APPEND it cannot mix with that of another process."""
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
    with os.fdopen(descriptor, "r+b", buffering=0) as stream:
        content = stream.read() or b""
        wanted = os.fsencode(line)
        if wanted not in content.splitlines():
            # Lists edited by hand may lack the last newline.
            stream.write((b"" if content.endswith(b"\n") or not content else b"\n") + wanted + b"\n")
