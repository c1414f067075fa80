"""Reading a lock of any format back into the one value that they share."""

from __future__ import annotations

from pathlib import Path

from envmedic.errors import InputError
from envmedic.locks import seal
from envmedic.model.base import from_json
from envmedic.model.lock import Lock

_HINT = "Give a conda-lock.yml, a pylock.toml, requirements with hashes, or the output of `envmedic lock --json`"


def read(path: Path, platform: str | None = None) -> Lock:
    """The lock in the file at `path`, told by its name and content.

    `platform`, by conda's word for it, chooses among those of a conda-lock file. `Lock.path` is the file. Raises
    InputError where it cannot be read, is no lock, is of an unknown version, or was edited by hand after envmedic made
    it; InstallerError where it needs conda-lock, which is absent.
    """
    content, source = _content(path), str(path)
    suffix = path.suffix.lower()
    if suffix == ".json" or content.lstrip().startswith("{"):
        return _document(content, source)
    if suffix == ".toml":
        from envmedic.locks import pylock  # noqa: PLC0415  # one format is read

        return pylock.parse(content, source)
    if suffix in {".yml", ".yaml"}:
        return _yaml(content, source, platform)
    if path.name.endswith("Dockerfile") or "\nFROM " in f"\n{content}":
        raise _not_a_lock(source, "It is a Dockerfile, which says how to make an environment, not what is in it")
    from envmedic.locks import requirements  # noqa: PLC0415

    return requirements.parse(content, source)


def _yaml(content: str, source: str, platform: str | None) -> Lock:
    if any(line.startswith("dependencies:") for line in content.splitlines()):
        raise _not_a_lock(source, "It is an environment.yml, which has no hashes")
    from envmedic.locks import conda_lock  # noqa: PLC0415  # conda-lock takes half a second

    return conda_lock.parse(content, source, platform)


def _content(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"The lock {path} cannot be read", cause=error.strerror, hint=_HINT) from error
    except UnicodeDecodeError as error:
        raise InputError(f"The lock {path} is not text", cause=str(error), hint=_HINT) from error


def _document(content: str, source: str) -> Lock:
    return from_json(content, Lock, source=source, hint=seal.AGAIN)


def _not_a_lock(source: str, cause: str) -> InputError:
    return InputError(f"{source} cannot be checked against an environment", cause=cause, hint=_HINT)
