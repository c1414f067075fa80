"""The description of a lock file format."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from envmedic.model.lock import Lock, LockFormatName


class LockFormat(msgspec.Struct, frozen=True, kw_only=True):
    """A format of lock files: its words, what it can hold, how it is recognised, written and read.

    What it can hold has no defaults: a new format states each rule instead of taking another one's.
    """

    name: LockFormatName
    filename: str
    """The name that the format's own tools look for."""
    about: str
    """What it holds and what installs it, in one line for people who choose."""
    holds: str
    """The same at more length, in Markdown for docs/locks.md."""
    read_by: str
    """Commands that read it, in Markdown."""

    holds_conda: bool
    """Whether conda packages can be entries."""
    needs_conda: bool
    """Whether its Python is a conda package, so that it cannot hold an environment without conda packages."""
    holds_hashes: bool
    """Whether it names files. A format without them holds versions, and asks for no URL, hash or commit."""
    needs_url: bool
    """Whether a wheel needs the URL of its file: without one, its name and version must lead there."""
    needs_pep440: bool
    """Whether versions must be valid by PEP 440."""
    holds_repositories: bool
    """Whether it names a repository with its commit, which has no hash."""
    holds_subdirectories: bool
    """Whether it names the directory of an archive in which a project lies."""
    holds_directories: bool
    """Whether it names the directory of a local project, relative to itself."""
    holds_platforms: bool
    """Whether one file can be for several platforms."""

    noun: str
    """What people call such a file, with its article."""
    recognises: Callable[[Path, str], bool]
    """Whether a file of that name and content is one; none of two formats may claim the same file."""
    write: Callable[[Lock], str]
    """The text of a lock whose `incomplete` names what the format cannot hold. Raises InstallerError."""
    read: Callable[[str, str, str | None], Lock] | None
    """The lock in a text, by its source and the platform wanted; raises InputError. None where it cannot be compared
    with an environment."""
    unreadable: str = ""
    """Why not, after `noun`."""


def is_yaml(path: Path) -> bool:
    """Whether the file is YAML by its name."""
    return path.suffix.lower() in {".yml", ".yaml"}


def has_dependencies(content: str) -> bool:
    """Whether a YAML text has the list of conda's environment.yml."""
    return any(line.startswith("dependencies:") for line in content.splitlines())
