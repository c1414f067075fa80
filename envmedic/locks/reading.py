"""Reader for locks of any format."""

from __future__ import annotations

from pathlib import Path

from envmedic.errors import InputError
from envmedic.locks import seal
from envmedic.locks.formats import LOCK_FORMATS
from envmedic.model.base import from_json
from envmedic.model.lock import Lock

_READ = ", ".join(form.noun for form in LOCK_FORMATS.values() if form.read is not None)
_HINT = f"Give {_READ}, or the output of `envmedic lock --json`"


def read(path: Path, platform: str | None = None) -> Lock:
    """The lock in the file at `path`; its name and content decide the format.

    `platform`, by conda's name, chooses among those of a conda-lock file. `Lock.path` is the file. Raises
    InputError where it cannot be read, is no lock, is of an unknown version, or was edited by hand after envmedic made
    it; InstallerError where it needs conda-lock, which is absent.
    """
    content, source = _content(path), str(path)
    # JSON starts with a brace under any name; no other format can
    if path.suffix.lower() == ".json" or content.lstrip().startswith("{"):
        return from_json(content, Lock, source=source, hint=seal.AGAIN)
    claimed = (form for form in LOCK_FORMATS.values() if form.recognises(path, content))
    # requirements have neither a fixed name nor a mark of their own: they are the rest
    form = next(claimed, LOCK_FORMATS["requirements"])
    if form.read is None:
        cause = f"It is {form.noun}, {form.unreadable}"
        raise InputError(f"{source} cannot be checked against an environment", cause=cause, hint=_HINT)
    return form.read(content, source, platform)


def _content(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"The lock {path} cannot be read", cause=error.strerror, hint=_HINT) from error
    except UnicodeDecodeError as error:
        raise InputError(f"The lock {path} is not text", cause=str(error), hint=_HINT) from error
