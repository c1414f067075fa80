"""The content of an environment as a small document: what is the same wherever the environment was installed.

Two levels: a digest of everything, and below it a digest of each distribution, of each place with files that no
distribution lists, and the variables. Which of many environments differ, and in what, is a comparison of these.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Final, Literal

from envmedic.model.base import Model

CONTENT_SCHEMA: Final = "envmedic.content/1"


class DistributionContent(Model, frozen=True, kw_only=True):
    """A distribution, or a package of conda, with the hash of its files."""

    name: str
    """Normalised name of a distribution; of a conda package its own."""
    version: str
    """Version with its local label."""
    variant: str | None = None
    """CUDA or CPU flavour of torch and its companions; of a conda package the build string."""
    owner: str
    """The installer that answers for it."""
    files: str
    """SHA-256 of the hashes and paths of its files, without what depends on place, time or installer."""
    altered: tuple[str, ...] = ()
    """Listed files that are missing or hold something else than listed, at most 20."""
    altered_count: int = 0
    """Number of all of them."""


class Content(Model, frozen=True, kw_only=True):
    """The document of ``envmedic facts --content --json``."""

    schema: Literal["envmedic.content/1"] = CONTENT_SCHEMA
    envmedic: str = ""
    """Version that read it."""
    digest: str
    """SHA-256 of all below except `envmedic`, `python`, `deep` and what is altered."""
    deep: bool = False
    """Whether every file was read; else files of the listed size count as listed."""
    python: str | None = None
    """Version of the interpreter, which has no part in `digest`."""
    system_site: bool = False
    """Whether the packages of the base interpreter are visible."""
    distributions: tuple[DistributionContent, ...] = ()
    """Sorted by name and version."""
    untracked: dict[str, str] = {}
    """SHA-256 of the files that no distribution lists, by place: a file, or a directory in site-packages or in the second
    level of the prefix."""
    variables: dict[str, str | None] = {}
    """What activation sets, and unsets (null), with ``{prefix}`` for the path of the environment."""


class EnvironmentClass(Model, frozen=True, kw_only=True):
    """What environments have in common for which one plan is right, on whichever machine they are."""

    content: str
    """Digest of their content."""
    deep: bool = False
    """Whether every file was read for it."""
    machine: str
    """Architecture, such as ``x86_64``."""
    glibc: str | None = None
    """Release of the C library."""
    python: str
    """Implementation and release series of Python, such as ``cpython 3.11``."""
    gpus: tuple[str, ...] = ()
    """Compute capabilities of the GPUs, each once."""
    driver: str | None = None
    """Branch of the NVIDIA driver, such as ``580``; null without a driver."""


class ContentDifference(Model, frozen=True, kw_only=True):
    """One thing in which the contents of two environments differ."""

    kind: Literal["distribution", "untracked", "variable", "system-site"]
    """What it is: a distribution, files that no distribution lists, a variable of activation, or a setting."""
    name: str
    """Of the distribution or variable; of files their place."""
    before: str | None
    """What the first has: version with variant and owner, digest or value; null where it has none."""
    after: str | None
    """The same of the second."""
    altered: tuple[str, ...] = ()
    """Where versions agree and files don't: those that the second has missing or not as listed."""


def digest_of(lines: Iterable[str]) -> str:
    """Return the SHA-256 of lines in any order."""
    return hashlib.sha256("\n".join(sorted(lines)).encode("utf-8", "surrogateescape")).hexdigest()


def content_digest(
    distributions: Iterable[DistributionContent],
    untracked: dict[str, str],
    variables: dict[str, str | None],
    *,
    system_site: bool,
) -> str:
    """Return the digest of a content by its parts."""
    lines = [
        f"distribution\0{item.name}\0{item.version}\0{item.variant or ''}\0{item.owner}\0{item.files}"
        for item in distributions
    ]
    lines += [f"untracked\0{place}\0{digest}" for place, digest in untracked.items()]
    lines += [f"variable\0{name}\0{'unset' if value is None else '=' + value}" for name, value in variables.items()]
    return digest_of([*lines, f"system-site\0{system_site}"])
