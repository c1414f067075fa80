"""Origin of installed distributions: the file of each, by proof of content, by tags, or by exclusion of the others."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from io import BufferedReader
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from packaging.tags import parse_tag
from packaging.utils import (
    InvalidSdistFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import InvalidVersion, Version

from envmedic.errors import EnvmedicError, InstallerError, NetworkError
from envmedic.installers.index import configuration
from envmedic.installers.index.configuration import IndexConfiguration
from envmedic.installers.index.credentials import without_credentials
from envmedic.installers.resolution import simple_index, uv_options
from envmedic.installers.resolution.simple_index import IndexQuery
from envmedic.installers.wheels import artifact_hash, remote_metadata, wheel_cache, wheel_files
from envmedic.model.answers.family import Offered
from envmedic.model.facts import Distribution, Environment
from envmedic.model.lock import WheelFile
from envmedic.model.plan import Artifact
from envmedic.model.ports import ResolveRequest

if TYPE_CHECKING:
    from envmedic.installers.index.http import IndexSession

PARALLEL = 8
"""Number of distributions compared with indexes at the same time."""
Key = tuple[str, str]
"""Normalised name and version."""


@dataclass(frozen=True)
class FileSources:
    """Sources to search for files."""

    uv: str
    fetch: bool = False
    """Whether to query indexes over the network; otherwise uv's cache of their pages is read."""
    unreached: Callable[[EnvmedicError], None] | None = None
    """Told of an index that cannot be asked, whose files are left out then; without it, that ends the search."""
    artifacts: tuple[Artifact, ...] = ()
    """Wheels that envmedic installed here, by its own records."""
    find_links: tuple[str, ...] = ()
    torch_index: str = ResolveRequest(pins=()).torch_index


def find_files(
    environment: Environment, wanted: Sequence[Distribution], sources: FileSources
) -> Mapping[Key, WheelFile]:
    """The files of `wanted`; a distribution whose file cannot be determined is left out.

    Raises `NetworkError` or `InstallerError` only where `sources.fetch` allows the network, and nobody is told of it.
    """
    plain = [msgspec.structs.replace(item, version=_normal(item.version)) for item in wanted]
    found = _found(environment, plain, sources)
    pairs = ((_key(item), found.get(_key(same))) for item, same in zip(wanted, plain, strict=True))
    return {key: file for key, file in pairs if file is not None}


def _normal(version: str) -> str:
    """`version` as indexes and file names write it (PEP 440)."""
    try:
        return str(Version(version))
    except InvalidVersion:
        return version


def _found(environment: Environment, wanted: Sequence[Distribution], sources: FileSources) -> dict[Key, WheelFile]:
    """As `find_files`, by normalised versions: records first, then wheels on this machine, then indexes."""
    found = dict(_recorded(wanted, environment, sources.artifacts))
    # From cheap to expensive: records cost nothing, local wheels are hashed, indexes need uv and perhaps the network.
    folders = tuple(_folders(environment, sources))
    found.update(wheel_cache.find([item for item in wanted if _key(item) not in found], environment, folders))
    lacking = [item for item in wanted if (file := found.get(_key(item))) is None or file.url is None]
    if lacking:
        found.update(_from_indexes(environment, lacking, found, sources))
    return found


def _key(item: Distribution) -> Key:
    return item.name, item.version


def _recorded(
    wanted: Sequence[Distribution], environment: Environment, artifacts: Sequence[Artifact]
) -> Iterator[tuple[Key, WheelFile]]:
    """Files that envmedic installed by its records, unless the cached wheel proves a later replacement."""
    by_key = {(item.name, _normal(item.version)): item for item in artifacts}
    for item in wanted:
        artifact = by_key.get(_key(item))
        if artifact is not None:
            path = Path(artifact.local_path)
            # A wheel of another build with the same version may have been installed by hand since.
            if not path.is_file() or wheel_cache.is_proven(path, item, environment):
                yield _key(item), _of_artifact(artifact)


def _of_artifact(item: Artifact) -> WheelFile:
    """A wheel that a plan resolved; without URL for a local one, which no other machine can reach."""
    local = item.url.startswith("file:")
    return WheelFile(
        name=item.name,
        version=item.version,
        kind="wheel",
        filename=item.filename,
        sha256=item.sha256,
        source="resolution",
        url=None if local else without_credentials(item.url),
        size_bytes=item.size_bytes,
    )


def _folders(environment: Environment, sources: FileSources) -> list[Path]:
    pip = configuration.of(environment).pip
    given = (remote_metadata.local_file(where) or Path(where) for where in (*sources.find_links, *pip.find_links))
    return [path for path in given if path.is_dir()]


def _from_indexes(
    environment: Environment, lacking: Sequence[Distribution], found: Mapping[Key, WheelFile], sources: FileSources
) -> dict[Key, WheelFile]:
    """Files of distributions without file or URL, by indexes: from uv's cache first, then from the network."""
    read = configuration.of(environment)
    chosen: dict[Key, WheelFile] = {}
    with _session(read) if sources.fetch else nullcontext() as session:
        # uv's cache first even where the network is allowed: most pages are in it since the installation.
        for http in (None, session) if sources.fetch else (None,):
            rest = [item for item in lacking if (file := chosen.get(_key(item))) is None or _is_local(file.url)]
            # Wheels with a label such as +cu124 are on an index of their own, and one run of uv has one such index.
            for label, group in groupby(sorted(rest, key=_label), key=_label):
                request = _request(label, sources)
                asking = IndexQuery(sources.uv, environment, uv_options.translate(read, request), offline=http is None)
                try:
                    chosen.update(_Look(asking, http, request, found).at(list(group)))
                except (NetworkError, InstallerError) as error:
                    if http is None:
                        continue  # uv's cache has no page of it
                    if sources.unreached is None:
                        raise
                    sources.unreached(error)
    return chosen


def _is_local(url: str | None) -> bool:
    """Whether it is the path of a file, which no other machine can reach."""
    return url is not None and url.startswith("file:")


def _session(read: IndexConfiguration) -> AbstractContextManager[IndexSession]:
    from envmedic.installers.index.http import opened

    return opened(read)


def _label(item: Distribution) -> str:
    return item.local or ""


def _request(label: str, sources: FileSources) -> ResolveRequest:
    return ResolveRequest(
        pins=(),
        variant=label or None,
        needs_variant_index=bool(label),
        find_links=sources.find_links,
        torch_index=sources.torch_index,
    )


@dataclass(frozen=True)
class _Look:
    """A query of the indexes for distributions with the same local label."""

    asking: IndexQuery
    session: IndexSession | None
    """None without network."""
    request: ResolveRequest
    found: Mapping[Key, WheelFile]
    """Files known already, perhaps without URL."""

    def at(self, wanted: Sequence[Distribution]) -> dict[Key, WheelFile]:
        """The files of `wanted` that could be determined. Raises `NetworkError` or `InstallerError`."""
        offers = self._offers(wanted)
        with ThreadPoolExecutor(PARALLEL) as pool:
            files = pool.map(lambda item: self._file(item, offers.get(_key(item), ())), wanted)
            return {_key(item): file for item, file in zip(wanted, files, strict=True) if file is not None}

    def _offers(self, wanted: Sequence[Distribution]) -> dict[Key, tuple[Offered, ...]]:
        """Offered files of each distribution; with source archives where no wheel has the installed tags."""
        offers = simple_index.offered_wheels(self.asking, [_key(item) for item in wanted])
        open_ = [_key(item) for item in wanted if _key(item) in offers and not _exact(item, offers[_key(item)])]
        return {**offers, **simple_index.wheels_and_archives(self.asking, open_)}

    def _file(self, item: Distribution, offers: Sequence[Offered]) -> WheelFile | None:
        hashed = [file for file in offers if file.sha256 and self._credible(item, file)]
        hashed.sort(key=lambda file: _is_local(file.url))  # an index first: other machines reach it
        before = self.found.get(_key(item))
        # With a known hash only the same content can add something, namely its URL.
        if before is not None or item.origin.sha256 is not None:
            digest = before.sha256 if before is not None else item.origin.sha256
            same = next((file for file in hashed if file.sha256 == digest), None)
            return self._taken(item, same, before) if same is not None else None
        choice = choose(item, hashed, self.asking.environment, None if self.session is None else self._proves)
        if choice is None and self.session is not None:
            choice = self._archive(item, self.session)
        return self._taken(item, choice, None) if choice is not None else None

    def _credible(self, item: Distribution, file: Offered) -> bool:
        """Whether a file may be the origin; the content of a local wheel decides."""
        path = remote_metadata.local_file(file.url)
        return path is None or not file.is_wheel or wheel_cache.is_proven(path, item, self.asking.environment)

    def _proves(self, item: Distribution, file: Offered) -> bool:
        """Whether the wheel on the index has the installed files; only the end of the wheel is read."""
        if remote_metadata.local_file(file.url) is not None:
            return True  # `_credible` has looked
        here = artifact_hash.installed_hashes(item, self.asking.environment)
        try:
            return self.session is not None and artifact_hash.same_content(_distant(file, self.session), here)
        except (remote_metadata.NoRanges, zipfile.BadZipFile):
            return False

    def _archive(self, item: Distribution, session: IndexSession) -> Offered | None:
        """The source archive of that version, where the index has no wheel that can be the one."""
        index = simple_index.default_index(self.asking)
        files = simple_index.project_files(session, index, item.name) if index is not None else ()
        return next((file for file in files if file.sha256 and is_archive_of(item, file.filename)), None)

    def _reachable(self, item: Distribution, file: Offered) -> Offered:
        """The same file on the default index, where uv stops at an index in a directory of this machine before it."""
        if self.session is None or not _is_local(file.url):
            return file
        index = simple_index.default_index(self.asking)
        try:
            offered = simple_index.project_files(self.session, index, item.name) if index is not None else ()
        except NetworkError:
            return file  # its path is all that is known, as without a network
        return next((same for same in offered if same.sha256 == file.sha256), file)

    def _taken(self, item: Distribution, file: Offered, before: WheelFile | None) -> WheelFile:
        file = self._reachable(item, file)
        index = uv_options.variant_index(self.request)
        return WheelFile(
            name=item.name,
            version=item.version,
            kind="wheel" if file.is_wheel else "sdist",
            filename=file.filename,
            sha256=file.sha256 or "",
            source=before.source if before is not None else "index",
            url=file.url,
            index=without_credentials(index) if index is not None else None,
            size_bytes=file.size_bytes,
        )


def _distant(file: Offered, session: IndexSession) -> artifact_hash.Hashes:
    """Hashes in RECORD of a remote wheel. Raises `NoRanges` if the server sends only whole files."""
    head = session.request("HEAD", file.url)
    size = file.size_bytes or int(head.headers.get("Content-Length", 0))
    # RECORD of torch has a megabyte and more: larger blocks mean fewer requests.
    with BufferedReader(remote_metadata.RangeFile(file.url, size, session), 4 * remote_metadata.BLOCK) as wheel:
        return artifact_hash.wheel_hashes(wheel)


def choose(
    item: Distribution,
    offers: Sequence[Offered],
    environment: Environment,
    proves: Callable[[Distribution, Offered], bool] | None,
) -> Offered | None:
    """The file from which `item` was installed; None if that cannot be determined.

    Usually its WHEEL file lists the tags of the wheel's name. Some projects (torch) rename their wheels: then `proves`
    compares content. Without `proves`, a release must have a single fitting wheel and no source archive, so that a
    local build is excluded. A local build has tags that no wheel of the release has.
    """
    wheels_ = [file for file in offers if file.is_wheel]
    archive = next((file for file in offers if not file.is_wheel and is_archive_of(item, file.filename)), None)
    # Tags usually identify the wheel among those of one version: installers copy WHEEL unchanged.
    exact = _exact(item, wheels_)
    if exact:
        return exact[0]
    fitting = _fitting(wheels_, environment)
    if proves is None:
        sole = len(fitting) == 1 and archive is None and item.origin.kind == "index"
        return fitting[0] if sole else None
    return next((file for file in fitting if proves(item, file)), archive)


def _exact(item: Distribution, files: Sequence[Offered]) -> list[Offered]:
    """Wheels whose names have exactly the installed tags."""
    return [file for file in files if file.is_wheel and _tags(file.filename) == expanded(item.tags)]


def _fitting(files: Sequence[Offered], environment: Environment) -> list[Offered]:
    """Wheels for this interpreter, in the order in which installers prefer them."""
    ranks = wheel_files.tag_ranks(environment.interpreter)
    ranked = [(wheel_files.rank(file.filename, ranks), file) for file in files]
    return [file for rank, file in sorted(ranked, key=lambda pair: pair[0]) if rank < len(ranks)]


def _tags(filename: str) -> frozenset[str]:
    try:
        _, _, _, tags = parse_wheel_filename(filename)
    except ValueError:  # an index may list any file name
        return frozenset()
    return frozenset(map(str, tags))


def is_archive_of(item: Distribution, filename: str) -> bool:
    """Whether a file is the source archive of the distribution's version."""
    try:
        name, version = parse_sdist_filename(filename)
    except InvalidSdistFilename:
        return False
    return canonicalize_name(name) == item.name and str(version) == item.version


def expanded(tags: Sequence[str]) -> frozenset[str]:
    """Tags of WHEEL, which may be written as sets (``py2.py3-none-any``), one by one."""
    return frozenset(str(tag) for text in tags for tag in parse_tag(text))
