"""Verification of a conda change: records against the plan, every new file against its hash."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from envmedic.conda_meta import records as meta
from envmedic.conda_meta.records import PrefixRecord, RecordedFile, Records
from envmedic.errors import InstallerError, IntegrityError
from envmedic.installers.wheels import wheel_files
from envmedic.model.conda import CondaArtifact, CondaChange

_SHOWN = 10
_WORKERS = 4
Exact = tuple[str, str, str]


def record_file(artifact: CondaArtifact) -> str:
    """Path of the record of an installed package, relative to the prefix."""
    return f"conda-meta/{artifact.name}-{artifact.version}-{artifact.build}.json"


def require_planned(before: Records[PrefixRecord], change: CondaChange) -> None:
    """Raise InstallerError unless every package that `change` removes is installed."""
    there = {(item.name, item.version, item.build) for item in before.packages.values()}
    # One unreadable record is enough to refuse: nobody knows which files it stands for.
    missing = [item for item in change.remove if (item.name, item.version, item.build) not in there]
    if missing or before.damaged:
        what = next((f"{item.name} {item.version} {item.build}" for item in missing), "")
        raise InstallerError(
            f"{what} is not installed here" if what else f"{next(iter(before.damaged))} cannot be read",
            cause="its record in conda-meta is gone" if what else next(iter(before.damaged.values())),
            hint="Make a new plan with `envmedic plan`",
        )


def verify(tree: Path, before: Records[PrefixRecord], change: CondaChange) -> int:
    """Check the environment in `tree` after `change`; `before` is what was installed. Returns the number of files.

    Raises IntegrityError for missing or unexpected packages, for new files with other content than in their package,
    and for remaining files of removed packages that no other package lists.
    """
    after = meta.read(tree)
    _require_packages(before, after, change)
    installed = [after.packages[record_file(item)] for item in change.install]
    files = [pair for record in installed for pair in record.files(after.site_packages)]
    _raise("differ from their packages", list(_wrong(tree, files)))
    _raise("of removed packages are there still", list(_left(tree, before, after, change)))
    return len(files)


def _require_packages(before: Records[PrefixRecord], after: Records[PrefixRecord], change: CondaChange) -> None:
    gone = {(item.name, item.version, item.build) for item in change.remove}
    wanted = set(_exact(before.packages.values())) - gone
    wanted |= {(item.name, item.version, item.build) for item in change.install}
    found = list(_exact(after.packages.values()))
    wrong = [" ".join(item) for item in sorted(wanted.symmetric_difference(found))]
    wrong += [*after.damaged, *(where for where in map(record_file, change.install) if where not in after.packages)]
    wrong += [f"{name} twice" for name in sorted({item[0] for item in found if found.count(item) > 1})]
    _raise("records of packages are not those of the plan", wrong, what="")


def _exact(records: Iterable[PrefixRecord]) -> Iterator[Exact]:
    return ((item.name, item.version, item.build) for item in records)


def _wrong(tree: Path, files: list[tuple[str, RecordedFile]]) -> Iterator[str]:
    """Files that are missing or have other content, with the reason."""
    # hashlib releases the GIL for large blocks, so threads use several cores.
    with ThreadPoolExecutor(_WORKERS) as pool:
        for (path, _), fault in zip(files, pool.map(lambda pair: _fault(tree, *pair), files), strict=True):
            if fault:
                yield f"{path}: {fault}"


def _fault(tree: Path, path: str, entry: RecordedFile) -> str:
    if entry.path_type == "directory":
        return ""
    try:
        status = (tree / path).lstat()
    except OSError:
        # Byte code is listed but optional: a module may not compile.
        return "" if entry.path_type == "pyc_file" else "missing"
    if entry.path_type == "softlink":
        return "" if stat.S_ISLNK(status.st_mode) else "no symbolic link"
    # Not the hash in the package: the prefix was written into the file.
    wanted = entry.installed_sha256
    if wanted is None:
        return ""
    if not stat.S_ISREG(status.st_mode):
        return "no regular file"
    return "" if wheel_files.sha256_of(tree / path) == wanted else "another content"


def _left(
    tree: Path, before: Records[PrefixRecord], after: Records[PrefixRecord], change: CondaChange
) -> Iterator[str]:
    """Remaining files that only removed packages listed."""
    listed = {path for item in after.packages.values() for path, _ in item.files(after.site_packages)}
    gone = {item.record for item in change.remove}
    for where, record in before.packages.items():
        for path, entry in record.files(before.site_packages) if where in gone else ():
            # lexists: a broken link is a leftover too. Directories may hold files of pip.
            if entry.path_type != "directory" and path not in listed and os.path.lexists(tree / path):
                yield path


def _raise(how: str, wrong: list[str], *, what: str = "files ") -> None:
    if wrong:
        raise IntegrityError(
            f"{len(wrong)} {what}{how}",
            cause=wrong[0],
            hint="Run the same command again; the other --installer may do what this one did not",
            details=tuple(wrong[:_SHOWN]),
        )
