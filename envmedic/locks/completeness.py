"""Requirements of each format on its entries, and reasons why an entry fails them."""

from __future__ import annotations

from typing import Final

import msgspec
from packaging.version import InvalidVersion, Version

from envmedic.locks.lock_format import LockFormat
from envmedic.model.lock import Incomplete, Lock, LockedPackage

FETCH: Final = "lock again where its index can be asked, without --offline"
ABSENT: Final = "no index that is configured for pip or uv has its file; install it again from one that has"

_ELSEWHERE: Final = "publish it, install it from a repository, or write a pylock or requirements into its project"


def with_gaps(lock: Lock, form: LockFormat) -> Lock:
    """`lock` in that format, with the entries that the format cannot hold in `incomplete`."""
    every = ((item, missing(item, form, asked=lock.asked)) for item in lock.packages)
    found = [_incomplete(item, reason) for item, reason in every if reason is not None]
    if form.needs_conda and not any(item.manager == "conda" for item in lock.packages):
        reason = f"the environment has no conda packages, so a {form.name} file has no Python: choose pylock"
        found.append(Incomplete(name="python", version=lock.python, reason=reason))
    return msgspec.structs.replace(lock, format=form.name, incomplete=(*lock.incomplete, *found))


def complete(lock: Lock, form: LockFormat) -> tuple[LockedPackage, ...]:
    """The packages that the format holds."""
    return tuple(item for item in lock.packages if missing(item, form) is None)


def missing(item: LockedPackage, form: LockFormat, *, asked: bool = False) -> str | None:
    """Why the format cannot hold the entry, with advice; None where it can. `asked` says that the indexes were asked."""
    return (
        _conda_missing(item, form) if item.manager == "conda" else _pip_missing(item, form, ABSENT if asked else FETCH)
    )


def _conda_missing(item: LockedPackage, form: LockFormat) -> str | None:
    if not form.holds_conda:
        return f"a conda package, which {form.name} cannot hold: choose conda-lock or environment"
    if not form.holds_hashes:
        return None
    if item.url is None:
        return "its conda record has no URL: install it again from a channel"
    if item.md5 is None:
        return "its conda record has no MD5, which conda-lock needs: install it again from a channel"
    return None


def _pip_missing(item: LockedPackage, form: LockFormat, advice: str) -> str | None:
    if form.needs_pep440 and not _has_version(item):
        return f"its version {item.version} is none by PEP 440, which {form.name} wants"
    # before the hash: a hash of a local build would not help anyone else to install it
    held = item.path is not None and form.holds_directories
    local = None if held else _local(item)
    if local is not None or held or not form.holds_hashes:
        return local
    return _repository(item, form) if item.kind == "vcs" else _file_missing(item, form, advice)


def _has_version(item: LockedPackage) -> bool:
    try:
        Version(item.version)
    except InvalidVersion:
        return False
    return True


def _file_missing(item: LockedPackage, form: LockFormat, advice: str) -> str | None:
    if item.sha256 is None:
        return f"no SHA-256 of what was installed is known: {advice}"
    if item.url is None and form.needs_url:
        return f"no URL of what was installed is known: {advice}"
    if item.subdirectory and not form.holds_subdirectories:
        return f"from the directory {item.subdirectory} of an archive, which only pylock can hold"
    return None


def _local(item: LockedPackage) -> str | None:
    """Why other machines cannot install it; None where they can."""
    if item.kind == "editable":
        return f"an editable install from a directory of this machine: {_ELSEWHERE}"
    if item.kind == "directory":
        return f"installed from a directory of this machine: {_ELSEWHERE}"
    if item.kind in {"vcs", "archive"} and item.url is None:
        return "installed from a file or repository of this machine: publish it where others can reach it"
    if item.kind == "unknown" and item.sha256 is None:
        return "neither pip nor uv nor conda says where it came from: install it again by one of them"
    return None


def _repository(item: LockedPackage, form: LockFormat) -> str | None:
    if item.revision is None:
        return "its metadata has no commit: install it again from a commit"
    if not form.holds_repositories:
        commit = item.revision[:12]
        return f"from a repository at {commit}, which has no hash that {form.name} could hold: choose pylock"
    return None


def _incomplete(item: LockedPackage, reason: str) -> Incomplete:
    return Incomplete(name=item.name, version=item.version, reason=reason)
