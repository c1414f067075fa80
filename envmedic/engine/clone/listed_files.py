"""Which files of a tree the distributions in it list as theirs, so that a removal by path leaves those alone."""

from __future__ import annotations

import base64
import csv
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from envmedic.conda_meta import records


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
    """Each file that a distribution in `tree` lists, by its path, with who lists it and the hash stated there.

    Who lists it is the dist-info whose RECORD does, or conda's record of the package; for a package that comes with
    a dist-info of its own, the record stands for both. Raises OSError.
    """
    root = Path(os.path.realpath(tree))
    found: dict[str, dict[str, str]] = {}
    of_conda: set[str] = set()
    for record, files in _conda_claims(root).items():
        infos = {os.path.dirname(path) for path in files if path.endswith(".dist-info/RECORD")}  # noqa: PTH120  # text
        if not all(map(os.path.isdir, infos)):
            continue  # an installer of wheels has taken the package over: conda's list is of what was there before
        of_conda |= infos
        for path, stated in files.items():
            found.setdefault(path, {})[record] = stated
    for site in site_packages(root):
        for folder in _metadata(site):
            for path, stated in _entries(Path(folder, "RECORD"), site) if folder not in of_conda else ():
                found.setdefault(path, {})[folder] = stated
    return found


def _conda_claims(root: Path) -> Mapping[str, Mapping[str, str]]:
    """The files of each of conda's records, by the record's path, with their hashes as RECORD writes them."""
    read = records.read(root)
    return {
        os.fspath(root / where): {
            _joined(os.fspath(root), path): _as_in_record(file.installed_sha256)
            for path, file in record.files(read.site_packages)
            if file.path_type != "pyc_file"  # made where it lies, and made again
        }
        for where, record in read.packages.items()
    }


def _as_in_record(sha256: str | None) -> str:
    try:
        digest = bytes.fromhex(sha256 or "")
    except ValueError:
        return ""
    return f"sha256={base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}" if digest else ""


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
