"""The shipped tables, from the record and the documents. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, zip_longest
from operator import itemgetter

import msgspec

from envmedic.compat import published, versions
from envmedic.compat.published import CompanionRelease, TorchRelease
from envmedic.compat.table_rows import (
    Capability,
    Companion,
    CompanionVariant,
    DefaultWheel,
    NumpyRelease,
    NvrtcClamp,
    PythonWheels,
    Release,
    SassRow,
    Tags,
    ToolkitRow,
    TorchAbi,
    TritonWheels,
    Variant,
)
from envmedic.errors import InputError
from envmedic.model.answers.family import Offered
from tests.tables import couplings
from tests.tables.documents import Documents, Paired, Row, Span, within
from tests.tables.record import CANONICAL, Listed, Record, text

COMPANIONS = ("torchaudio", "torchvision")
LIBRARY = "libtorch_python.so"


class TorchFile(msgspec.Struct, kw_only=True):
    """``torch_releases.json``."""

    meta: Row
    releases: list[Release]
    python_wheels: list[PythonWheels]
    default_wheels: list[DefaultWheel]
    variants: list[Variant]
    companions: list[Companion]
    companion_variants: list[CompanionVariant]
    triton: list[TritonWheels]
    conda: list[Row]
    abi: list[TorchAbi]


def files(record: Record, documents: Documents) -> dict[str, str]:
    """Return the content of every table, by the name of its file."""
    head, written = {"generated": record.read}, {"generated": documents.meta["read"]}
    packages = documents.rows(documents.packages)
    return {
        "torch_releases.json": text(torch_file(record, documents)),
        "cuda_driver.json": text(
            {
                "meta": written,
                "toolkits": documents.typed(documents.toolkits, ToolkitRow),
                "nvrtc_clamps": documents.typed(documents.nvrtc_clamps, NvrtcClamp),
            }
        ),
        "gpu_arch.json": text(
            {
                "meta": written,
                "sass_compatibility": documents.typed(documents.sass_compatibility, SassRow),
                "capabilities": documents.typed(documents.capabilities, Capability),
            }
        ),
        "couplings.json": text({"meta": head, "releases": list(couplings.rows(record)), "numpy": list(_numpy(record))}),
        "extensions.json": text({"meta": written, "packages": packages}),
        "conda_packages.json": text(
            {
                "meta": written,
                "flavours": documents.rows(documents.flavours),
                "builds": documents.rows(documents.builds),
                "libraries": documents.rows(documents.libraries),
                "names": documents.rows(documents.names),
            }
        ),
    }


def torch_file(record: Record, documents: Documents) -> TorchFile:
    """Return the table of torch releases."""
    found = [
        TorchRelease(version=row.version, files=row.files, wheels=wheels)
        for row in record.of("torch")
        if (wheels := record.contents(row))
    ]
    documented = documents.typed(documents.releases, Release)
    days = {item.version: item.day for item in found} | {row.version: row.release_date for row in documented}
    names = sorted(days, key=versions.parsed)
    known = published.pythons(file for item in found for file in item.files)
    companions = {name: list(_companions(name, record, documents, names, known)) for name in COMPANIONS}
    chosen = {name: _recommended(companions[name], names, days) for name in COMPANIONS}
    rows = [
        published.release_row(item, chosen["torchvision"][item.version], chosen["torchaudio"][item.version])
        for item in found
    ]
    abi = [*map(_abi, found), *documents.typed(documents.abi, TorchAbi)]
    return TorchFile(
        meta={"generated": record.read, "index": CANONICAL},
        releases=sorted([*rows, *documented], key=lambda row: versions.parsed(row.version)),
        python_wheels=[row for item in found for row in published.python_rows(item, known)],
        default_wheels=[published.default_row(item) for item in found],
        variants=list(_variants(found, record, documents, known)),
        companions=[_with_torch(row, chosen[name]) for name in COMPANIONS for row, _ in companions[name]],
        companion_variants=[row for name in COMPANIONS for row in _companion_variants(name, record)],
        triton=[published.triton_row(row.version, row.files, known) for row in record.of("triton")],
        conda=list(_conda(documents, names)),
        abi=sorted(abi, key=lambda row: versions.parsed(row.torch)),
    )


def _abi(found: TorchRelease) -> TorchAbi:
    read = {where: wheel.numpy_abi for where, wheel in found.wheels.items() if wheel.numpy_abi is not None}
    source = tuple(published.told(found.wheels[where], LIBRARY) for where in read)
    return TorchAbi(torch=found.version, numpy_abi=dict(read), source=source)


Dated = tuple[Companion, str | None]
"""A companion with the day of its first upload."""


def _companions(
    name: str, record: Record, documents: Documents, torch: Sequence[str], known: Sequence[str]
) -> Iterator[Dated]:
    rows = [(_companion(row, record, documents, torch, known), row.uploaded) for row in record.of(name)]
    rows += [(_documented(item, documents), None) for item in documents.companions if item.name == name]
    yield from sorted(rows, key=lambda row: versions.parsed(row[0].version))


def _companion(
    row: Listed, record: Record, documents: Documents, torch: Sequence[str], known: Sequence[str]
) -> Companion:
    wheels = record.contents(row)
    wheel = wheels.get("linux_x86_64") or next(iter(wheels.values()))
    found = CompanionRelease(name=row.project, version=row.version, files=row.files, wheel=wheel)
    told = [item for item in documents.unstated if item.name == row.project]
    own = [item for item in told if versions.parsed(item.first) <= versions.parsed(row.version)]
    if not own or found.spec is not None:
        return published.companion_row(found, None, torch, known)
    return published.companion_row(found, own[-1].spec, torch, known, *documents.told(own[-1].source))


def _documented(row: Paired, documents: Documents) -> Companion:
    return Companion(
        name=row.name,
        version=row.version,
        torch=row.torch,
        spec=None,
        declared=False,
        requires_python=None,
        python=row.python,
        yanked=False,
        recommended_for=(),
        source=documents.told(row.source),
    )


def _recommended(rows: Sequence[Dated], torch: Sequence[str], days: Mapping[str, str | None]) -> dict[str, str]:
    """Return the companion for each torch; `torch` in ascending order. Raises InputError for a torch without one."""
    chosen = {}
    unstated = [(row, day) for row, day in rows if row.spec is None and day is not None]
    for here, later in zip_longest(torch, torch[1:]):
        until = days[later] if later else None
        guessed = [(msgspec.structs.replace(row, torch=(here,)), day) for row, day in unstated]
        row = published.recommended(rows, here, until) or published.recommended(guessed, here, until)
        if row is None:
            hint = "Make the tables again when one is there, or write one into the documents"
            raise InputError(f"no {rows[0][0].name if rows else 'companion'} goes with torch {here}", hint=hint)
        chosen[here] = row.version
    return chosen


def _with_torch(row: Companion, chosen: Mapping[str, str]) -> Companion:
    mine = tuple(torch for torch, version in chosen.items() if version == row.version)
    if set(mine) <= set(row.torch):
        return msgspec.structs.replace(row, recommended_for=mine)
    source = (*row.source, "rule: it states no requirement on torch, and is the newest from before the next torch")
    return msgspec.structs.replace(row, torch=mine, recommended_for=mine, source=source)


def _companion_variants(name: str, record: Record) -> Iterator[CompanionVariant]:
    """Yield spans of releases whose wheels on the default index are one variant."""
    for platform in ("linux_x86_64", "linux_aarch64"):
        wheels = [(row.version, record.contents(row).get(platform)) for row in record.of(name)]
        built = [(version, published.variant(wheel), wheel) for version, wheel in wheels if wheel is not None]
        for variant, group in groupby(built, key=itemgetter(1)):
            span = list(group)
            if variant is not None:
                source = tuple(
                    dict.fromkeys(published.told(wheel, "version.py") for _, _, wheel in (span[0], span[-1]))
                )
                first, last = span[0][0], span[-1][0]
                yield CompanionVariant(
                    name=name, first=first, last=last, variant=variant, platform=platform, source=source
                )


def _variants(
    found: Sequence[TorchRelease], record: Record, documents: Documents, known: Sequence[str]
) -> Iterator[Variant]:
    """Yield the builds: as the default index and its wheels say, completed by listings of other indexes and documents."""
    rows = {(row.torch, row.variant): row for item in found for row in published.variant_rows(item, known)}
    offered = {item.version: item.files for item in found}
    names = [*offered, *(str(row["version"]) for row in documents.releases)]
    for span in documents.variants:
        for torch in within(span.first, span.last, names):
            built = _documented_build(torch, span, offered.get(torch, ()), known, documents)
            rows[torch, span.variant] = _joined(rows.get((torch, span.variant)), built)
    for listed in record.releases:
        if listed.index != CANONICAL and listed.project == "torch" and listed.label:
            key = listed.version, listed.label
            rows[key] = _joined(rows.get(key), _listed_build(listed, known))
    yield from sorted(rows.values(), key=lambda row: (versions.parsed(row.torch), versions.dotted(row.cuda or "0")))


def _documented_build(
    torch: str, span: Span, files: Sequence[Offered], known: Sequence[str], documents: Documents
) -> Variant:
    return Variant(
        torch=torch,
        variant=span.variant,
        cuda=versions.variant_cuda(span.variant),
        python=span.python or (None if span.unlisted else _with_the_gil(published.wheel_tags(files, known))),
        platforms=span.platforms,
        arch_linux_x86_64=span.arch_linux_x86_64,
        arch_linux_aarch64=span.arch_linux_aarch64,
        ptx_linux_x86_64=span.ptx_linux_x86_64,
        default_on=(),
        published=True,
        source=documents.told(span.source),
    )


def _with_the_gil(tags: Tags) -> tuple[str, ...] | None:
    # no document says of a build whether it exists for free-threaded Pythons
    python = tags.get("linux_x86_64")
    return python and tuple(tag for tag in python if not tag.endswith("t"))


def _listed_build(listed: Listed, known: Sequence[str]) -> Variant:
    tags = published.wheel_tags(listed.files, known)
    return Variant(
        torch=listed.version,
        variant=str(listed.label),
        cuda=versions.variant_cuda(str(listed.label)),
        python=tuple(dict.fromkeys(tag for where in tags for tag in tags[where])),
        platforms=tuple(tags),
        default_on=(),
        published=True,
        source=(f"listing: files of torch on {listed.index}",),
    )


def _joined(read: Variant | None, told: Variant) -> Variant:
    """Return what was read of a build, completed by what is told of it; of its Pythons, its own index knows best.

    Its own library is believed first, then what is told of it, then what another build of the release lists: torch 2.11
    and 2.12 list capabilities for their other builds that these do not have.
    """
    if read is None:
        return told
    x86, arm = (place in read.default_on for place in ("linux_x86_64", "linux_aarch64"))
    known = read.published and read.platforms is not None
    return msgspec.structs.replace(
        told,
        python=told.python or read.python,
        platforms=tuple(dict.fromkeys((*(read.platforms or ()), *(told.platforms or ())))) if known else told.platforms,
        arch_linux_x86_64=_believed(read.arch_linux_x86_64, told.arch_linux_x86_64, own=x86),
        arch_linux_aarch64=_believed(read.arch_linux_aarch64, told.arch_linux_aarch64, own=arm),
        ptx_linux_x86_64=told.ptx_linux_x86_64 if read.ptx_linux_x86_64 is None else read.ptx_linux_x86_64,
        default_on=read.default_on,
        source=tuple(dict.fromkeys((*read.source, *told.source))),
    )


def _believed(read: tuple[str, ...] | None, told: tuple[str, ...] | None, *, own: bool) -> tuple[str, ...] | None:
    return (read or told) if own else (told or read)


def _conda(documents: Documents, torch: Sequence[str]) -> Iterator[Row]:
    rows = []
    for row in documents.rows(documents.conda):
        last = row["last"]
        for version in within(str(row["first"]), None if last is None else str(last), torch):
            rest = {key: value for key, value in row.items() if key not in {"first", "last"}}
            rows.append({"torch": version, **rest})
    yield from sorted(rows, key=lambda row: versions.parsed(str(row["torch"])))


def _numpy(record: Record) -> Iterator[NumpyRelease]:
    for row in record.of("numpy"):
        python = published.pythons(row.files)
        yield NumpyRelease(
            numpy=row.version,
            abi=versions.parsed(row.version).major,
            wheels_min=python[0],
            wheels_max=python[-1],
            source=published.LISTED.format(name="numpy"),
        )
