"""Rows of the tables from what an index offers and wheels say of themselves.

The same code makes the tables that are shipped, and the rows of a release that is newer than they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version

from envmedic.compat import versions
from envmedic.compat.table_rows import Companion, DefaultWheel, PythonWheels, Release, Tags, TritonWheels, Variant
from envmedic.model.answers.family import Offered, WheelContents

LISTED = "listing: files of {name} on the default index"
_PLATFORM = re.compile(r"(?:many)?linux\w*_(x86_64|aarch64)")
_TAG = re.compile(r"(?:cp|py)(\d)(\d*)")
_ANY = "py3"
_NO_CUDA = "cpu"


def platform(file: Offered) -> str | None:
    """Return ``linux_x86_64`` or ``linux_aarch64`` of a wheel, None for another platform and for no wheel."""
    found = _PLATFORM.search(file.filename.rpartition("-")[2])
    return f"linux_{found[1]}" if found is not None and file.is_wheel else None


def release_of(file: Offered) -> str | None:
    """Return the public version that a wheel's file name says, None for a pre-release and for no wheel's name."""
    try:
        found = parse_wheel_filename(file.filename)[1]
    except (InvalidWheelFilename, ValueError):
        return None
    return None if found.is_prerelease else found.public


def by_release(files: Iterable[Offered]) -> dict[str, tuple[Offered, ...]]:
    """Return the Linux wheels of each release, oldest release first."""
    found: dict[str, list[Offered]] = {}
    for file in files:
        release = release_of(file)
        if release is not None and platform(file) is not None:
            found.setdefault(release, []).append(file)
    return {release: tuple(found[release]) for release in sorted(found, key=Version)}


def pythons(files: Iterable[Offered]) -> tuple[str, ...]:
    """Return every Python that these wheels name, oldest first: what a wheel for later ones (abi3) may be used with."""
    tags = {tag for file in files for tag in _tags(file, ()) if tag != _ANY and not tag.endswith("t")}
    return tuple(sorted(tags, key=versions.dotted))


def wheel_tags(files: Sequence[Offered], known: Sequence[str]) -> Tags:
    """Return the Python tags of wheels by platform; `known` are the Pythons that one for later ones is counted for."""
    found: dict[str, set[str]] = {}
    for file in files:
        where = platform(file)
        if where is not None:
            found.setdefault(where, set()).update(_tags(file, known))
    return {where: tuple(sorted(found[where], key=_tag_order)) for where in sorted(found, reverse=True)}


def _tag_order(tag: str) -> tuple[tuple[int, ...], bool]:
    return versions.dotted(tag.removesuffix("t")), tag.endswith("t")


def _tags(file: Offered, known: Sequence[str]) -> Iterator[str]:
    python, abi = file.filename.split("-")[-3:-1]
    for tag in python.split("."):
        match = _TAG.fullmatch(tag)
        if match is None:
            continue
        if not match[2]:
            yield _ANY
            continue
        first = f"{match[1]}.{match[2]}"
        if abi == "abi3" or tag.startswith("py"):
            accepted = file.requires_python or ""
            later = [item for item in known if versions.dotted(item) >= versions.dotted(first)]
            yield from (item for item in later if versions.allows(accepted, f"{item}.99"))
        else:
            yield first + ("t" if abi.endswith("t") else "")


def requirement(wheel: WheelContents, name: str) -> Requirement | None:
    """Return the requirement of a wheel on `name`, without an extra; None where it states none."""
    for text in wheel.requires:
        try:
            found = Requirement(text)
        except InvalidRequirement:
            continue
        if found.name == name and "extra" not in str(found.marker or ""):
            return found
    return None


def variant(wheel: WheelContents) -> str | None:
    """Return the variant of a wheel by its own version file, None where that does not tell."""
    label = versions.local(wheel.version or "")
    if label is not None and versions.official_label(label):
        return label
    if wheel.cuda is not None:
        return "cu" + wheel.cuda.replace(".", "")
    # the metadata of a CUDA build name CUDA's own wheels, unless the build has it all in itself
    return None if wheel.version is None else _NO_CUDA


class TorchRelease(msgspec.Struct, frozen=True):
    """What an index offers of a torch release, and its default wheels by platform."""

    version: str
    files: tuple[Offered, ...]
    wheels: dict[str, WheelContents]

    @property
    def first(self) -> WheelContents:
        """The wheel whose metadata count."""
        return self.wheels.get("linux_x86_64") or next(iter(self.wheels.values()))

    @property
    def day(self) -> str | None:
        """Day of its first upload (ISO 8601); None where the index does not tell."""
        return min((file.uploaded for file in self.files if file.uploaded), default=None)


def told(wheel: WheelContents, *parts: str) -> str:
    """Return the source of what was read in a wheel: its name, with the parts of it that were read."""
    return f"wheel: {wheel.filename}" + (f" ({', '.join(parts)})" if parts else "")


def release_row(found: TorchRelease, torchvision: str, torchaudio: str) -> Release:
    """Return the row of a torch release with its recommended companions."""
    asked = requirement(found.first, "triton")
    return Release(
        version=found.version,
        release_date=found.day,
        lts=False,
        requires_python=found.first.requires_python,
        torchvision=torchvision,
        torchaudio=torchaudio,
        triton=f"triton{asked.specifier}" if asked is not None else None,
        triton_marker=str(asked.marker) if asked is not None and asked.marker is not None else None,
        source=(told(found.first, "METADATA"), LISTED.format(name="torch")),
    )


def python_rows(found: TorchRelease, known: Sequence[str]) -> tuple[PythonWheels, ...]:
    """Return the Pythons that a release has wheels for, a row for each platform."""
    return tuple(
        PythonWheels(torch=found.version, platform=where, python=tags, source=(LISTED.format(name="torch"),))
        for where, tags in wheel_tags(found.files, known).items()
    )


def default_row(found: TorchRelease) -> DefaultWheel:
    """Return the row of the builds on the default index."""
    variants = {where: built for where, wheel in found.wheels.items() if (built := variant(wheel)) is not None}
    tags = found.first.filename.removesuffix(".whl").rpartition("-")[2]
    return DefaultWheel(
        torch=found.version,
        variants=variants,
        file_tags=tuple(tags.split(".")),
        source=tuple(told(wheel, "version.py") for wheel in found.wheels.values()),
    )


def variant_rows(found: TorchRelease, known: Sequence[str]) -> Iterator[Variant]:
    """Yield the builds of a release that its default wheels are, and those that they tell of.

    The latter are not known to be published: torch lists them to tell users of one build about the others.
    """
    default: dict[str, list[str]] = {}
    for where, wheel in found.wheels.items():
        built = variant(wheel)
        if built is not None:
            default.setdefault(built, []).append(where)
    tags = wheel_tags(found.files, known)
    for built, places in default.items():
        cuda = versions.variant_cuda(built)
        machines = found.first.builds.get(cuda or "", {})
        own = {item: found.wheels[item].sass or machines.get(item.partition("_")[2]) for item in places}
        x86 = found.wheels.get("linux_x86_64") if "linux_x86_64" in places else None
        yield Variant(
            torch=found.version,
            variant=built,
            cuda=cuda,
            python=tuple(dict.fromkeys(tag for item in places for tag in tags.get(item, ()))),
            platforms=tuple(places),
            arch_linux_x86_64=own.get("linux_x86_64") or None,
            arch_linux_aarch64=own.get("linux_aarch64") or None,
            ptx_linux_x86_64=bool(x86.ptx) if x86 is not None and x86.sass else None,
            default_on=tuple(places),
            published=True,
            source=tuple(told(found.wheels[item], "version.py", "libtorch_python.so") for item in places),
        )
    for cuda, machines in found.first.builds.items():
        named = "cu" + cuda.replace(".", "")
        if named not in default:
            yield Variant(
                torch=found.version,
                variant=named,
                cuda=cuda,
                python=None,
                platforms=None,
                arch_linux_x86_64=_listed(machines, "x86_64", found),
                arch_linux_aarch64=_listed(machines, "aarch64", found),
                default_on=(),
                published=False,
                source=(told(found.first, "torch/cuda/__init__.py"),),
            )
    if _NO_CUDA not in default:
        yield Variant(
            torch=found.version,
            variant=_NO_CUDA,
            cuda=None,
            python=None,
            platforms=None,
            default_on=(),
            published=False,
            source=("rule: every release of torch has had a build for the CPU",),
        )


def _listed(machines: Mapping[str, tuple[str, ...]], machine: str, found: TorchRelease) -> tuple[str, ...] | None:
    """Return what the release lists for another build; of a list for all machines, what its own wheel has as well.

    The lists of torch 2.11 and 2.12, one for all machines, name more than the builds have.
    """
    own = found.wheels.get(f"linux_{machine}")
    everywhere = machines.get("")
    if everywhere is None:
        return machines.get(machine)
    return tuple(code for code in everywhere if own is not None and code in own.sass) or None


class CompanionRelease(msgspec.Struct, frozen=True):
    """What an index offers of a release of torchvision or torchaudio, and the contents of one wheel of it."""

    name: str
    version: str
    files: tuple[Offered, ...]
    wheel: WheelContents

    @property
    def day(self) -> str | None:
        """Day of its first upload (ISO 8601); None where the index does not tell."""
        return min((file.uploaded for file in self.files if file.uploaded), default=None)

    @property
    def spec(self) -> str | None:
        """The torch that its metadata require; None where they state none."""
        found = requirement(self.wheel, "torch")
        return str(found.specifier) or None if found is not None else None

    @property
    def yanked(self) -> bool:
        """Whether its authors withdrew all of it."""
        return all(file.yanked for file in self.files)


def companion_row(
    found: CompanionRelease, spec: str | None, torch: Sequence[str], known: Sequence[str], *sources: str
) -> Companion:
    """Return the row of a companion beside the torch releases that `spec` accepts; it counts where metadata tell none."""
    declared = found.spec
    accepted = declared or spec
    return Companion(
        name=found.name,
        version=found.version,
        torch=tuple(item for item in torch if accepted is not None and _accepts(accepted, item)),
        spec=accepted,
        declared=declared is not None,
        requires_python=found.wheel.requires_python,
        python=wheel_tags(found.files, known),
        yanked=found.yanked,
        recommended_for=(),
        source=(told(found.wheel, "METADATA"), LISTED.format(name=found.name), *sources),
    )


def _accepts(spec: str, torch: str) -> bool:
    # an early build's metadata name the label of the build: ==2.0.0+cu117
    return versions.allows(re.sub(r"\+\w+", "", spec), torch)


def recommended(rows: Iterable[tuple[Companion, str | None]], torch: str, until: str | None) -> Companion | None:
    """Return the companion for a torch release: the newest that accepts it, of those uploaded before the next torch.

    `rows` are pairs of a companion and its day; `until` is the day of the next torch release, None for the newest.
    """
    fitting = [(row, day) for row, day in rows if torch in row.torch and not row.yanked]
    before = [row for row, day in fitting if until is None or day is None or day < until]
    return max(before or [row for row, _ in fitting], key=lambda row: versions.parsed(row.version), default=None)


def triton_row(version: str, files: Sequence[Offered], known: Sequence[str]) -> TritonWheels:
    """Return the Pythons that a triton has wheels for."""
    return TritonWheels(version=version, python=wheel_tags(files, known), source=(LISTED.format(name="triton"),))
