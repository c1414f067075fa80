"""The content of an environment, read from its files: see `model.content`.

A file of the size that its distribution lists counts as listed unless `deep` says to read it. What no list tells, and
programs, into which installers write paths, is read always, so that both ways give one digest of a sound environment.
"""

from __future__ import annotations

import base64
import hashlib
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from envmedic import __version__
from envmedic.analysis.fleet.content import PLACE, is_frame, is_incidental, is_script, place_of, without_place
from envmedic.conda_meta import records
from envmedic.conda_meta.records import RecordedFile
from envmedic.model.answers.content import Content, DistributionContent, content_digest, digest_of
from envmedic.model.facts import Environment
from envmedic.probe.packages import contents, distributions
from envmedic.probe.packages.distributions import Installed
from envmedic.probe.packages.record_check import SHOWN, Disk
from envmedic.probe.prefix import kept_variables
from envmedic.probe.readable import read_bytes
from envmedic.probe.text import encodable
from envmedic.tree.walk import directories, is_cache

_TEXT_LIMIT = 4 << 20
"""Larger files than this hold no paths that an installer wrote as text."""


class _Listed(msgspec.Struct, frozen=True):
    """A file as a distribution lists it."""

    name: str
    """Relative to the prefix."""
    label: str
    """The same without the version of Python, for the digest."""
    sha256: str = ""
    """As RECORD writes it; nothing where the list tells none."""
    size: str = ""
    on_disk: str = ""
    """The hash that the file as listed has on the disk, where a path in it changes that."""
    placed: bool = False
    """Whether an installer writes the path of the environment into it as text."""


class _Part(msgspec.Struct, frozen=True):
    """A distribution or conda package with the files that it lists."""

    name: str
    version: str
    variant: str | None
    owner: str
    files: tuple[_Listed, ...]


def observe_content(environment: Environment, *, deep: bool) -> Content:
    """Read the content of an observed environment. Raises OSError where its directories cannot be read."""
    tree = _Tree(environment, deep=deep)
    parts = [*_wheels(environment), *_packages(environment)]
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        listed = _once(file for part in parts for file in part.files)
        hashes = dict(zip((file.name for file in listed), pool.map(tree.hash_of, listed), strict=True))
        found = sorted((_described(part, hashes) for part in parts), key=lambda item: (item.name, item.version))
        free = [name for name in tree.names if name not in hashes and not is_frame(name) and not is_incidental(name)]
        untracked = _grouped(free, pool.map(tree.own_hash, free), tree.sites)
    # with no shell around: what is kept, not what it becomes beside the variables of this one
    variables = kept_variables.observe(Path(environment.real_prefix), {})
    kept = {item.name: _placeless(item.value, tree.homes) for item in variables}
    return encodable(
        Content(
            envmedic=__version__,
            digest=content_digest(found, untracked, kept, system_site=environment.include_system_site),
            deep=deep,
            python=environment.interpreter.version,
            system_site=environment.include_system_site,
            distributions=tuple(found),
            untracked=untracked,
            variables=kept,
        )
    )


class _Tree:
    """The files of an environment, each hashed where a list does not tell enough."""

    def __init__(self, environment: Environment, *, deep: bool) -> None:
        self._prefix = Path(environment.real_prefix)
        self._deep = deep
        self.homes = tuple(map(os.fsencode, dict.fromkeys((environment.prefix, environment.real_prefix))))
        self.sites = tuple(_sites(environment))
        sizes: dict[str, int] = {}
        names: list[str] = []
        for base, entries in directories(self._prefix, caches=False):
            for entry in entries:
                if entry.is_symlink():
                    names.append(base + entry.name)
                elif entry.is_file(follow_symlinks=False):
                    names.append(base + entry.name)
                    sizes[names[-1]] = entry.stat(follow_symlinks=False).st_size
        self.names = tuple(names)
        """Regular files and symbolic links, byte code left out."""
        self._disk = Disk(self._prefix, sizes)

    def hash_of(self, file: _Listed) -> str:
        """The hash of a listed file as it counts: the listed one where the file is as listed."""
        size = self._disk.size(file.name)
        if size is None:
            return "missing"
        if file.placed or not file.sha256:
            return self.own_hash(file.name)
        if not self._deep and (not file.size or file.size == str(size)):
            return file.sha256
        digest = contents.digest(self._prefix / file.name) or "unreadable"
        return file.sha256 if digest == file.on_disk else digest

    def own_hash(self, name: str) -> str:
        """The hash of a file's content without its place, or of where a link leads."""
        path = self._prefix / name
        try:
            status = path.lstat()
            if stat.S_ISLNK(status.st_mode):
                return "link " + without_place(os.fsencode(path.readlink()), self.homes).decode("utf-8", "replace")
        except OSError:
            return "missing"
        data = read_bytes(path, _TEXT_LIMIT) if status.st_size <= _TEXT_LIMIT else None
        if data is None:
            return contents.digest(path) or "unreadable"
        return _recorded(hashlib.sha256(without_place(data, self.homes)).digest())


def _once(files: Iterable[_Listed]) -> list[_Listed]:
    """Each path once; of one that several distributions list with other content, the disk tells which is there."""
    found: dict[str, _Listed] = {}
    for file in files:
        first = found.setdefault(file.name, file)
        if first.sha256 != file.sha256:
            found[file.name] = msgspec.structs.replace(first, sha256="")
    return list(found.values())


def _recorded(digest: bytes) -> str:
    """A hash as RECORD writes it."""
    return "sha256=" + base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def _placeless(value: str | None, homes: Sequence[bytes]) -> str | None:
    if value is None:
        return None
    data = os.fsencode(value)
    for home in homes:
        data = data.replace(home, PLACE)
    return os.fsdecode(data)


def _sites(environment: Environment) -> Iterator[str]:
    """The site-packages directories, relative to the prefix."""
    for site in environment.site_packages:
        yield os.path.relpath(os.path.realpath(site), os.path.realpath(environment.real_prefix))


def _wheels(environment: Environment) -> Iterator[_Part]:
    """The distributions that no conda package brought."""
    prefix = Path(environment.real_prefix)
    builds = (*((environment.torch,) if environment.torch else ()), *environment.companions)
    variants = {getattr(item, "name", "torch"): item.variant for item in builds}
    owners = {item.metadata_path: item.owner for item in environment.distributions}
    for site, base in zip(environment.site_packages, _sites(environment), strict=True):
        for item in distributions.scan(Path(site), prefix).installed:
            found = item.distribution
            owner = owners.get(found.metadata_path, found.owner)
            if owner != "conda":
                yield _Part(
                    found.name,
                    found.version,
                    variants.get(found.name) or found.local,
                    owner,
                    tuple(_of_record(item, base)),
                )


def _of_record(item: Installed, base: str) -> Iterator[_Listed]:
    columns = zip(item.paths, item.hashes or [""] * len(item.paths), item.sizes or [""] * len(item.paths), strict=True)
    for path, sha256, size in columns:
        name = os.path.normpath(f"{base}/{path}")
        inside = not path.startswith("/") and not name.startswith("../")
        if inside and not is_cache(path) and not path.endswith("__pycache__/") and not is_incidental(path):
            known = sha256 if sha256.startswith("sha256=") else ""
            yield _Listed(name, path, known, size, placed=is_script(name))


def _packages(environment: Environment) -> Iterator[_Part]:
    """The packages of conda."""
    if environment.conda is None:
        return
    known = records.read(Path(environment.real_prefix), python=environment.interpreter.version)
    for record in known.packages.values():
        files = (
            _of_conda(path, entry)
            for path, entry in record.files(known.site_packages)
            if entry.path_type != "directory" and not is_cache(path) and not path.startswith("/") and ".." not in path
        )
        yield _Part(record.name, record.version, record.build, "conda", tuple(files))


def _of_conda(path: str, entry: RecordedFile) -> _Listed:
    """A file as its record lists it. Conda pads the path of the environment in binary files: those are taken as listed."""
    if entry.names_prefix and entry.file_mode != "binary":
        return _Listed(path, path, placed=True)
    digest, on_disk = entry.installed_sha256, ""
    if entry.names_prefix:
        digest, on_disk = entry.sha256, _of_hex(entry.sha256_in_prefix)
    size = entry.installed_size
    return _Listed(path, path, _of_hex(digest), "" if size is None else str(size), on_disk)


def _of_hex(digest: str | None) -> str:
    """A hash of conda's records as RECORD writes it; nothing for what is none."""
    try:
        return _recorded(bytes.fromhex(digest or "")) if digest else ""
    except ValueError:
        return ""


def _described(part: _Part, hashes: Mapping[str, str]) -> DistributionContent:
    rows = {file.label: hashes[file.name] for file in part.files}
    altered = sorted(
        file.name
        for file in part.files
        if hashes[file.name] in {"missing", "unreadable"}
        or (file.sha256 and not file.placed and hashes[file.name] != file.sha256)
    )
    return DistributionContent(
        name=part.name,
        version=part.version,
        variant=part.variant,
        owner=part.owner,
        files=digest_of(f"{label}\0{digest}" for label, digest in rows.items()),
        altered=tuple(altered[:SHOWN]),
        altered_count=len(altered),
    )


def _grouped(names: Iterable[str], hashes: Iterable[str], sites: Sequence[str]) -> dict[str, str]:
    """One hash for each place of untracked files."""
    groups: dict[str, list[str]] = {}
    for name, digest in zip(names, hashes, strict=True):
        groups.setdefault(place_of(name, sites), []).append(f"{name}\0{digest}")
    return {place: digest_of(groups[place]) for place in sorted(groups)}
