"""What is known from documents only: one file that people write, each row with its sources."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from envmedic.compat import versions
from envmedic.model.base import Model, from_json

DOCUMENTS = Path(__file__).with_name("documents.json")
Row = dict[str, object]
T = TypeVar("T")


class Span(Model, frozen=True, kw_only=True):
    """A build of torch for one CUDA version, or for the CPU, over a span of releases."""

    variant: str
    first: str
    last: str
    python: tuple[str, ...] | None = None
    """None for those that the default index has wheels of the release for, except free-threaded ones."""
    platforms: tuple[str, ...] | None = None
    arch_linux_x86_64: tuple[str, ...] | None = None
    arch_linux_aarch64: tuple[str, ...] | None = None
    ptx_linux_x86_64: bool | None = None
    unlisted: bool = False
    """Whether no listing of its index was seen, so that nobody knows its Pythons."""
    source: tuple[str, ...]


class Unstated(Model, frozen=True, kw_only=True):
    """The torch that a companion needs from a release on, where its metadata don't say."""

    name: str
    first: str
    spec: str
    source: tuple[str, ...]


class Paired(Model, frozen=True, kw_only=True):
    """A companion that the default index does not have."""

    name: str
    version: str
    torch: tuple[str, ...]
    python: dict[str, tuple[str, ...]]
    source: tuple[str, ...]


class Documents(Model, frozen=True, kw_only=True):
    """``documents.json``. Tables that go into the shipped files as they stand are rows of any shape."""

    meta: dict[str, str]
    sources: dict[str, str]
    """Short name → source, which rows name."""
    releases: tuple[Row, ...]
    variants: tuple[Span, ...]
    abi: tuple[Row, ...]
    conda: tuple[Row, ...]
    companions: tuple[Paired, ...]
    unstated: tuple[Unstated, ...]
    toolkits: tuple[Row, ...]
    nvrtc_clamps: tuple[Row, ...]
    capabilities: tuple[Row, ...]
    sass_compatibility: tuple[Row, ...]
    packages: tuple[Row, ...]
    flavours: tuple[Row, ...]
    builds: tuple[Row, ...]
    libraries: tuple[Row, ...]
    names: tuple[Row, ...]

    def told(self, names: Sequence[str]) -> tuple[str, ...]:
        """The sources in full."""
        return tuple(self.sources.get(name, name) for name in names)

    def rows(self, rows: Sequence[Row]) -> list[Row]:
        """Rows with their sources in full."""
        return [{**row, "source": self.told(row["source"])} for row in rows]  # type: ignore[arg-type]

    def typed(self, rows: Sequence[Row], kind: type[T]) -> list[T]:
        """The same as rows of a table. Raises `msgspec.ValidationError` for a row that is none."""
        return [msgspec.convert(row, kind) for row in self.rows(rows)]


def load(path: Path = DOCUMENTS) -> Documents:
    """Return the documents. Raises `InputError` for a file that is none."""
    return from_json(path.read_bytes(), Documents, source=str(path))


def within(first: str, last: str | None, releases: Sequence[str]) -> Iterator[str]:
    """Yield the releases from `first` to `last`, both included; None for no upper end."""
    low, high = versions.parsed(first), versions.parsed(last) if last else None
    yield from (
        item for item in releases if low <= versions.parsed(item) and (not high or versions.parsed(item) <= high)
    )
