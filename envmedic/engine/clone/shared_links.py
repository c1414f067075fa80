"""What a clone still shares with its original, kept from installers.

A clone holds a link where the environment holds one: when ``site-packages``, or a package in it, is a link to
another disk, a removal meant for the clone would hit the live environment. And files of a clone may be hard links:
an installer that finds a file where it wants to write one (an orphan, or a file that two distributions claim)
may write into it, as uv 0.9 does, and so into the original.
"""

from __future__ import annotations

import csv
import os
import stat
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from envmedic.conda_meta import records
from envmedic.engine.fs.file_copy import make_private
from envmedic.errors import PreflightError
from envmedic.model.plan import Artifact, Install, InstalledReference, Purge

_PURE = frozenset({"purelib", "platlib"})
_BESIDE = {"scripts": "bin", "headers": "include", "data": ""}
"""Where the other parts of a wheel's ``.data`` go, relative to the prefix."""


def unshare(step: Purge | Install, tree: Path, seen_at: Path) -> None:
    """Make sure that nothing which `step` removes or writes is the original's too.

    `tree` is the clone and `seen_at` the path at which commands see it. Files that a wheel writes over get an inode
    of their own. Raises PreflightError when a file lies outside the clone, and OSError.
    """
    files = set(_purged(step, tree) if isinstance(step, Purge) else _installed(step, tree))
    root = Path(os.path.realpath(seen_at))
    for directory in sorted({os.path.dirname(file) for file in files}):  # noqa: PTH120  # thousands of them
        _require_inside(directory, root)
    if isinstance(step, Install):
        for file in files:
            _own(tree / file)


def refuse_links_out(tree: Path, seen_at: Path) -> None:
    """Raise PreflightError where a directory into which installers write lies outside the clone: they would change both."""
    root = Path(os.path.realpath(seen_at))
    for site in (*tree.glob("lib*/python*/site-packages"), *tree.glob("lib*/python*/site-packages/*")):
        if (site.is_symlink() and site.is_dir()) or site.parent.is_symlink():
            _require_inside(os.fspath(site.relative_to(tree)), root)
    _require_inside("bin", root)


def refuse_outside(tree: Path, seen_at: Path) -> None:
    """Raise PreflightError where a directory in which conda's packages have files lies outside the clone.

    Their installers replace files and never write into them, so what is shared by hard links needs no copy.
    """
    installed = records.read(tree)
    files = (path for item in installed.packages.values() for path, _ in item.files(installed.site_packages))
    root = Path(os.path.realpath(seen_at))
    for directory in sorted({os.path.dirname(path) for path in files}):  # noqa: PTH120  # thousands of them
        _require_inside(directory, root)


def _require_inside(directory: str, root: Path) -> None:
    if directory.startswith(".."):
        raise PreflightError(
            f"A distribution that is to be removed lists files outside the environment, in {directory}",
            cause="Its RECORD is damaged; an installer that follows it would delete what is not the environment's",
            hint="Take the lines that begin so out of its RECORD",
        )
    real = Path(os.path.realpath(root / directory))
    if not real.is_relative_to(root):
        raise PreflightError(
            f"{directory} of the environment lies elsewhere, at {real}",
            cause="The copy and the environment share it, so a repair of the copy would change both at once",
            hint=f"Replace the link by the directory itself: remove the link, then cp -a {real} in its place",
        )


def _own(path: Path) -> None:
    try:
        status = path.lstat()
    except (FileNotFoundError, NotADirectoryError):  # what most wheels find
        return
    if stat.S_ISREG(status.st_mode):
        make_private(path)


def _purged(step: Purge, tree: Path) -> Iterator[str]:
    """Files that distributions list, relative to the prefix; those outside it begin with ``..``."""
    for reference in step.distributions:
        if not PurePosixPath(reference.metadata_path).is_absolute():
            yield reference.metadata_path
            yield from _listed(reference, tree)


def _listed(reference: InstalledReference, tree: Path) -> Iterator[str]:
    metadata = tree / reference.metadata_path
    site = os.path.dirname(reference.metadata_path)  # noqa: PTH120  # text, as what is joined to it
    for name, base in (("RECORD", site), ("installed-files.txt", reference.metadata_path)):
        if (metadata / name).is_file():
            with (metadata / name).open(encoding="utf-8", errors="surrogateescape", newline="") as file:
                yield from _below(base, (row[0] for row in csv.reader(file) if row))
    if (metadata / "top_level.txt").is_file():
        text = (metadata / "top_level.txt").read_text(encoding="utf-8", errors="surrogateescape")
        yield from _below(site, (f"{name}/__init__.py" for name in text.split()))


def _below(base: str, files: Iterable[str]) -> Iterator[str]:
    """`files` of `base`, lexically as installers take them; they follow no absolute path out of the environment."""
    for file in files:
        path = os.path.normpath(os.path.join(base, file))  # noqa: PTH118  # thousands of them
        if not path.startswith("/"):
            yield path


def _installed(step: Install, tree: Path) -> Iterator[str]:
    # A wheel says purelib or platlib, and distributions differ in lib and lib64: every site-packages is a candidate.
    for path in tree.glob("lib*/python*/site-packages"):
        site = os.fspath(path.relative_to(tree))
        yield f"{site}/new.dist-info"
        for artifact in step.artifacts:
            yield from _members(artifact, site)


def _members(artifact: Artifact, site: str) -> Iterator[str]:
    """Where a wheel's files go; nothing for a wheel that is not there, which its installer refuses."""
    wheel = Path(artifact.local_path)
    if not wheel.is_file():
        return
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            first, _, rest = name.partition("/")
            scheme, _, own = rest.partition("/")
            if not first.endswith(".data"):
                yield from _below(site, [name])
            else:
                yield from _below(site if scheme in _PURE else _BESIDE.get(scheme, ""), [own])
