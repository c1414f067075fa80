"""Which files of a tree the distributions in it list as theirs, so that a removal by path leaves those alone."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path


def listed_files(tree: Path, without: Iterable[Path]) -> frozenset[str]:
    """Real paths of the files that distributions in `tree` list, by RECORD, installed-files.txt or conda's records.

    `without` are metadata directories (real paths) that do not count. Damaged lists count as far as they can be read.
    """
    root = Path(os.path.realpath(tree))
    gone = {os.fspath(path) for path in without}
    found = {file for site in site_packages(root) for file in _of_site(site, gone)}
    found.update(file for record in root.glob("conda-meta/*.json") for file in _of_conda(record, root))
    return frozenset(found)


def site_packages(root: Path) -> tuple[str, ...]:
    """The site-packages directories of a prefix, each once however many links lead to it."""
    return tuple(dict.fromkeys(os.path.realpath(path) for path in root.glob("lib*/python*/site-packages")))


def own_files(tree: Path, metadata: str) -> tuple[Path, ...]:
    """Files inside `tree` that one distribution lists; `metadata` is its dist-info, relative to `tree`."""
    root = Path(os.path.realpath(tree))
    folder = Path(os.path.realpath(root / metadata))
    if not folder.is_relative_to(root):
        return ()
    lists = (("RECORD", folder.parent), ("installed-files.txt", folder))
    files = (Path(file) for name, base in lists for file in _rows(folder / name, os.fspath(base)))
    return tuple(file for file in files if Path(os.path.realpath(file.parent)).is_relative_to(root))


def listed_by(tree: Path, lists: Iterable[str]) -> frozenset[str]:
    """Paths that those of the files `lists` name which are lists of a distribution's files, all relative to `tree`."""
    root = Path(os.path.realpath(tree))
    found: set[str] = set()
    for path in map(root.joinpath, lists):
        if path.name == "RECORD":
            found.update(_rows(path, os.fspath(path.parent.parent)))
        elif path.name == "installed-files.txt":
            found.update(_rows(path, os.fspath(path.parent)))
        elif path.parent.name == "conda-meta" and path.suffix == ".json":
            found.update(_of_conda(path, root))
    return frozenset(os.path.relpath(file, root) for file in found)


def claims(tree: Path) -> Mapping[str, Mapping[str, str]]:
    """Each file that a RECORD in `tree` lists, by its path, with the dist-info of the RECORD and the hash stated there."""
    found: dict[str, dict[str, str]] = {}
    for site in site_packages(Path(os.path.realpath(tree))):
        for folder in _metadata(site):
            for path, stated in _entries(Path(folder, "RECORD"), site):
                found.setdefault(path, {})[folder] = stated
    return found


def unlisted(path: Path, listed: frozenset[str]) -> Iterator[Path]:
    """What of `path` nobody lists: all of it, or the largest parts of a directory in which others have files."""
    prefix = f"{path}{os.sep}"  # with the separator: ``torch`` must not claim the files of ``torchvision``
    own = frozenset(file for file in listed if file.startswith(prefix))
    if os.fspath(path) in listed and not path.is_dir():
        return
    if not own or path.is_symlink():
        yield path
        return
    for entry in sorted(path.iterdir()):
        yield from unlisted(entry, own)


def _of_site(site: str, gone: set[str]) -> Iterator[str]:
    for folder in _metadata(site):
        if folder in gone:
            continue
        for name, base in (("RECORD", site), ("installed-files.txt", folder)):
            yield from _rows(Path(folder, name), base)


def _metadata(site: str) -> list[str]:
    """The metadata directories of a site-packages, without what an interrupted installer left."""
    with os.scandir(site) as entries:
        return [
            entry.path
            for entry in entries
            if entry.name.endswith((".dist-info", ".egg-info"))
            and not entry.name.startswith(("~", "-"))
            and entry.is_dir()
        ]


def _rows(path: Path, base: str) -> Iterator[str]:
    return (file for file, _ in _entries(path, base))


def _entries(path: Path, base: str) -> Iterator[tuple[str, str]]:
    """The files of a list with their hashes, empty where none is stated."""
    if not path.is_file():
        return
    with path.open(encoding="utf-8", errors="surrogateescape", newline="") as file:
        rows = csv.reader(line.replace("\0", "") for line in file)
        while True:
            try:
                row = next(rows, None)
            except csv.Error:  # a line that is no row lists nothing
                continue
            if row is None:
                return
            if row and row[0]:
                yield _joined(base, row[0]), row[1] if row[1:] else ""


def _joined(base: str, name: str) -> str:
    """The path of a name in a list, as text: lists have tens of thousands, and hardly one that is not plain."""
    if name[0] in "/." or "/." in name or "//" in name or name[-1] == "/":
        return os.path.normpath(os.path.join(base, name))  # noqa: PTH118
    return f"{base}/{name}"


def _of_conda(record: Path, root: Path) -> Iterator[str]:
    try:
        content: object = json.loads(record.read_bytes())
    except ValueError:
        return
    files = content.get("files") if isinstance(content, dict) else None
    for file in files if isinstance(files, list) else ():
        yield os.path.normpath(os.path.join(root, str(file)))  # noqa: PTH118  # thousands of them
