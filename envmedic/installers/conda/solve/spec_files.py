"""The specs in files that commands of conda name: a spec a line, and ``environment.yml``.

https://docs.conda.io/projects/conda/en/stable/user-guide/tasks/manage-environments.html#create-env-file-manually.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from envmedic import safe_io
from envmedic.conda_meta import condarc
from envmedic.errors import InputError

_LARGEST = 1 << 20


class EnvironmentFile(NamedTuple):
    """What an ``environment.yml`` asks for."""

    specs: tuple[str, ...]
    channels: tuple[str, ...]
    wheels: tuple[str, ...]
    """Requirements for pip."""
    name: str | None = None
    prefix: str | None = None


def specs(file: str) -> tuple[str, ...]:
    """The specs of a file with one a line. Raises InputError."""
    lines = (line.partition("#")[0].strip() for line in _text(file).splitlines())
    return tuple(line for line in lines if line)


def environment(file: str) -> EnvironmentFile:
    """The content of an ``environment.yml``. Raises InputError."""
    try:
        content = condarc.load(_text(file))
    except ValueError as error:
        raise _unread(file, str(error)) from error
    if not isinstance(content, dict) or not isinstance(content.get("dependencies"), list):
        raise _unread(file, "it has no list of dependencies")
    listed = content["dependencies"]
    wheels = [item["pip"] for item in listed if isinstance(item, dict) and isinstance(item.get("pip"), list)]
    channels = content.get("channels")
    name, prefix = content.get("name"), content.get("prefix")
    return EnvironmentFile(
        specs=tuple(item for item in listed if isinstance(item, str)),
        # `nodefaults` is no channel: conda then leaves out those of its configuration
        channels=tuple(str(item) for item in channels) if isinstance(channels, list) else (),
        wheels=tuple(str(item) for own in wheels for item in own),
        name=name if isinstance(name, str) else None,
        prefix=prefix if isinstance(prefix, str) else None,
    )


def _text(file: str) -> str:
    try:
        return safe_io.read(Path(file), _LARGEST, follow=True).decode()
    except (OSError, ValueError) as error:
        raise _unread(file, str(error)) from error


def _unread(file: str, why: str) -> InputError:
    return InputError(f"{file} cannot be read", cause=why, hint="Name the file as the command would find it")
