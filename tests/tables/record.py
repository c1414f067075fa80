"""What indexes and wheels say, kept beside the program that asks: the only input of the tables that a network brings.

One row for each release that an index offers, and one for each wheel that was read. A run asks for the pages of the
projects, and reads the wheels that it has no row of.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from packaging.version import Version
from urllib3 import BaseHTTPResponse

from envmedic.compat import published, versions
from envmedic.installers.index import pages
from envmedic.installers.index.configuration import IndexConfiguration
from envmedic.installers.index.http import IndexSession
from envmedic.installers.wheels import torch_wheel
from envmedic.installers.wheels.torch_wheel import Part
from envmedic.model.answers.family import Offered, WheelContents
from envmedic.model.base import Model, from_json
from tests.tables import coupled
from tests.tables.coupled import Coupled

RECORD = Path(__file__).with_name("record.json")
CANONICAL = "default index"
"""The index whose files they are, whichever mirror of it was asked."""
FIRST = {"torch": "1.7.0", "torchvision": "0.8.0", "torchaudio": "0.7.0", "triton": "0.4.1", "numpy": "1.19"}
"""The projects, and the oldest release of each that the tables have."""
READ: Mapping[str, tuple[Part, ...]] = {
    "torch": ("version", "builds", "library"),
    "torchvision": ("version",),
    "torchaudio": ("version",),
}
"""What is read of a project's wheels."""
REQUESTS = 300
"""Highest number of a run: what is left is asked for by the next one."""


class Listed(Model, frozen=True, kw_only=True, omit_defaults=True):
    """A release on an index, with its wheels for Linux."""

    index: str = CANONICAL
    project: str
    version: str
    label: str | None = None
    """Local version label of the wheels, on the index of a variant."""
    uploaded: str | None = None
    """Day of the first upload (ISO 8601, UTC)."""
    requires_python: str | None = None
    yanked: bool = False
    wheels: tuple[str, ...]
    """The last three parts of their names: Python, ABI and platform tags."""

    @property
    def files(self) -> tuple[Offered, ...]:
        """The wheels as an index offers them, without address and size."""
        version = self.version + (f"+{self.label}" if self.label else "")
        names = (f"{self.project}-{version}-{tags}.whl" for tags in self.wheels)
        return tuple(
            Offered(
                filename=name,
                url="",
                requires_python=self.requires_python,
                uploaded=self.uploaded,
                yanked=self.yanked,
            )
            for name in names
        )


class Wheel(Model, frozen=True, kw_only=True):
    """A wheel that was read."""

    sha256: str
    contents: WheelContents


class Record(Model, frozen=True, kw_only=True):
    """``record.json``."""

    read: str
    """The day (ISO 8601, UTC) on which the projects' pages were asked for."""
    releases: tuple[Listed, ...] = ()
    wheels: tuple[Wheel, ...] = ()
    coupled: tuple[Coupled, ...] = ()
    """Releases of what is bound to torch."""

    def of(self, project: str) -> tuple[Listed, ...]:
        """The releases of a project on the default index, oldest first."""
        return tuple(row for row in self.releases if (row.project, row.index) == (project, CANONICAL))

    def contents(self, release: Listed) -> dict[str, WheelContents]:
        """What was read of a release, by platform."""
        read = {row.contents.filename: row.contents for row in self.wheels}
        found = ((published.platform(file), read.get(file.filename)) for file in release.files)
        by_platform = {where: wheel for where, wheel in found if where is not None and wheel is not None}
        return dict(sorted(by_platform.items(), reverse=True))


class Spent(Exception):
    """The run has asked as often as it may."""


class Counted(IndexSession):
    """A session with a highest number of requests, after which it raises `Spent`."""

    def __init__(self, configuration: IndexConfiguration, limit: int = REQUESTS) -> None:
        super().__init__(configuration)
        self.limit = self.left = limit

    def once(self, *args: Any, **rest: Any) -> BaseHTTPResponse:
        """One try, which counts."""
        if not self.left:
            raise Spent
        self.left -= 1
        return super().once(*args, **rest)


def load(path: Path = RECORD) -> Record:
    """Return the record. Raises `InputError` for a file that is none."""
    return from_json(path.read_bytes(), Record, source=str(path))


def text(value: object) -> str:
    """Return a document as JSON with a line for each row of its tables, as they are reviewed."""
    fields: dict[str, object] = msgspec.to_builtins(value)
    return "{\n " + ",\n ".join(f"{_line(key)}: {_value(item)}" for key, item in fields.items()) + "\n}\n"


def _value(item: object) -> str:
    if isinstance(item, list) and item and isinstance(item[0], dict):
        return "[\n" + ",\n".join("  " + _line(row) for row in item) + "\n ]"
    return _line(item)


def _line(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=0).decode()


def listed(session: IndexSession, index: str, project: str, name: str = CANONICAL) -> tuple[Listed, ...]:
    """Return the releases of a project on an index, oldest first. `name` is what the record calls the index."""
    oldest = Version(FIRST[project])
    found: dict[tuple[str, str | None], list[Offered]] = {}
    for release, files in published.by_release(pages.project_files(session, index, project)).items():
        for file in files if Version(release) >= oldest else ():
            label = versions.local(file.filename.split("-")[1])
            found.setdefault((release, label), []).append(file)
    return tuple(_row(name, project, *key, files) for key, files in found.items())


def _row(index: str, project: str, version: str, label: str | None, files: list[Offered]) -> Listed:
    return Listed(
        index=index,
        project=project,
        version=version,
        label=label,
        uploaded=min((file.uploaded for file in files if file.uploaded), default=None),
        requires_python=files[0].requires_python,
        yanked=all(file.yanked for file in files),
        wheels=tuple(sorted(file.filename.removesuffix(".whl").split("-", 2)[2] for file in files)),
    )


def renewed(record: Record, session: IndexSession, index: str, today: str) -> Iterator[Record]:
    """Yield the record with what is new on the default index: first its pages, then with one wheel more each time.

    Raises `Spent` and `NetworkError`; what was yielded before holds.
    """
    others = tuple(row for row in record.releases if row.index != CANONICAL)
    files = {name: pages.project_files(session, index, name) for name in FIRST}
    rows = tuple(row for name in FIRST for row in _releases(name, files[name]))
    record = msgspec.structs.replace(record, read=today, releases=(*rows, *others), wheels=_there(record, rows))
    yield record
    for file in _unread(record, files):
        wheel = Wheel(sha256=file.sha256 or "", contents=torch_wheel.read(file, session, READ[_project(file)]))
        record = msgspec.structs.replace(record, wheels=tuple(sorted((*record.wheels, wheel), key=_order)))
        yield record
    for found in coupled.renewed(record.coupled, session, index):
        record = msgspec.structs.replace(record, coupled=found)
        yield record


def _releases(name: str, files: Iterable[Offered]) -> Iterator[Listed]:
    found = published.by_release(files)
    for version, of_release in found.items():
        if Version(version) >= Version(FIRST[name]) and (name != "numpy" or _last_of_series(version, found)):
            yield _row(CANONICAL, name, version, None, list(of_release))


def _last_of_series(version: str, all_of_them: Iterable[str]) -> bool:
    series = [item for item in all_of_them if versions.same_minor(item, version)]
    return version == max(series, key=Version)


def _there(record: Record, rows: Iterable[Listed]) -> tuple[Wheel, ...]:
    """Return the wheels of these releases: one that was deleted from the index is forgotten."""
    names = {file.filename for row in rows for file in row.files}
    return tuple(wheel for wheel in record.wheels if wheel.contents.filename in names)


def _unread(record: Record, files: Mapping[str, Iterable[Offered]]) -> Iterator[Offered]:
    """Yield one wheel of each release and platform of which none was read, newest release first."""
    hashes = {wheel.sha256 for wheel in record.wheels}
    for name in READ:
        for release in reversed(record.of(name)):
            own = [file for file in files[name] if published.release_of(file) == release.version]
            for where in ("linux_x86_64", "linux_aarch64"):
                here = [file for file in own if published.platform(file) == where]
                if here and not any(file.sha256 in hashes for file in here):
                    yield max(here, key=_interpreter)


def _interpreter(file: Offered) -> tuple[bool, tuple[int, ...], str]:
    """Rank: the newest Python with the GIL, whose wheel every other one is like."""
    tag, abi = file.filename.split("-")[2:4]
    digits = tag.split(".")[0].lstrip("cpy")
    return not abi.endswith("t"), (int(digits[:1]), int(digits[1:] or 0)), file.filename


def _project(file: Offered) -> str:
    return file.filename.partition("-")[0]


def _order(wheel: Wheel) -> tuple[str, Version, str]:
    name, version = wheel.contents.filename.split("-")[:2]
    return name, Version(version), wheel.contents.filename
