"""Files that several distributions list, such as ``nvidia/__init__.py``: none is lost when one of them is removed.

Installers remove every file that a RECORD or conda's record lists, whoever else lists it.
"""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from envmedic.engine.clone.listed_files import claims
from envmedic.engine.fs.durable import make_directory
from envmedic.engine.fs.file_copy import NO_LINK
from envmedic.engine.store.workspace import Workplace
from envmedic.model.events import Notice
from envmedic.tree.fingerprint import Fingerprint

_ASIDE = "shared"
_SHOWN = 3
_BLOCK = 1 << 20


@contextmanager
def kept(place: Workplace) -> Iterator[None]:
    """Put back what commands in the clone remove of files that a distribution which stays lists with the same content.

    Raises OSError.
    """
    aside = place.trash / _ASIDE
    held = _hold(place.tree, aside)
    try:
        yield
        gone = {path: copy for path, copy in held.items() if not os.path.lexists(path)}
        back = _put_back(gone, place.tree)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    if back:
        told = f"kept for the other distributions that list {'it' if len(back) == 1 else 'them'}: {_shown(back)}"
        place.emit(Notice(code="shared-files-kept", message=told))


def lost(tree: Path, original: Fingerprint) -> tuple[str, ...]:
    """A line for each distribution in the clone `tree` that lacks files which it lists and which were there before."""
    root = os.path.realpath(tree)
    found: dict[str, list[str]] = {}
    for path, rows in claims(tree).items():
        name = path.removeprefix(f"{root}{os.sep}")
        if name in original.entries and not os.path.lexists(path):
            for folder in rows:
                found.setdefault(folder, []).append(name)
    return tuple(
        f"{_distribution(folder)} lists {_shown(names)}, gone by the repair" for folder, names in found.items()
    )


def _hold(tree: Path, aside: Path) -> dict[str, Path]:
    """A second name for each file that more than one distribution lists, by its path."""
    shared = [path for path, rows in claims(tree).items() if len(rows) > 1 and any(rows.values()) and _is_file(path)]
    held: dict[str, Path] = {}
    for path in shared:
        if not held:
            shutil.rmtree(aside, ignore_errors=True)
            if not aside.parent.is_dir():
                make_directory(aside.parent)
            make_directory(aside)
        held[path] = aside / str(len(held))
        try:
            os.link(path, held[path])
        except OSError as error:
            if error.errno not in NO_LINK:
                raise
            shutil.copy2(path, held[path])
    return held


def _is_file(path: str) -> bool:
    return os.path.isfile(path) and not os.path.islink(path)  # noqa: PTH113, PTH114  # text, as what is listed


def _put_back(gone: Mapping[str, Path], tree: Path) -> list[str]:
    """Give the files back whose content a RECORD states that is still there; returns their paths in the clone."""
    listed = claims(tree) if gone else {}
    back = []
    for path, copy in gone.items():
        if _hash(copy) in listed.get(path, {}).values():
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            copy.rename(path)
            back.append(os.path.relpath(path, os.path.realpath(tree)))
    return back


def _hash(path: Path) -> str:
    """The content of a file as RECORD states it."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        for block in iter(partial(file.read, _BLOCK), b""):
            digest.update(block)
    return f"sha256={base64.urlsafe_b64encode(digest.digest()).rstrip(b'=').decode()}"


def _distribution(folder: str) -> str:
    """Name and version for people: of a dist-info by its name, of conda's record without the build."""
    name = os.path.basename(folder)  # noqa: PTH119  # text, as what is listed
    if name.endswith(".json"):
        return " ".join(name.rsplit("-", 2)[:2])
    return name.removesuffix(".dist-info").replace("-", " ", 1)


def _shown(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(sorted(names)[:_SHOWN]) + more
