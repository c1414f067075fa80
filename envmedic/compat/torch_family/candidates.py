"""Candidates: the torch builds that each policy considers, best first."""

from __future__ import annotations

from collections.abc import Iterable

from packaging.version import Version

from envmedic.compat import tables, versions
from envmedic.compat.torch_family import pairs
from envmedic.compat.torch_family.rules import Build
from envmedic.compat.torch_family.ruling import Ruling, broken
from envmedic.compat.torch_family.target import FamilyTarget
from envmedic.model.playbook import Policy

_NO_VERSION = Version("0")
UNKNOWN_VARIANT = "unknown variant"
"""The variant of an installed torch whose variant could not be determined."""


def installed_build(target: FamilyTarget) -> Build | None:
    """Return the installed torch as a build that is kept, or None when no torch is installed.

    An unknown variant is taken from the local label, else from the default index for that release.
    """
    if target.torch is None:
        return None
    torch = versions.public(target.torch)
    label = versions.local(target.torch)
    # the library itself is the best witness, then the label; wheels of the default index have no label
    variant = target.query.variant or label or pairs.default_torch_variant(torch, target.platform)
    return Build(torch=torch, variant=variant or UNKNOWN_VARIANT, kept=True)


def foreign_backend(build: Build | None) -> bool:
    """Whether the installed torch is built for ROCm or XPU."""
    return build is not None and build.variant.startswith(("rocm", "xpu"))


def custom_build(target: FamilyTarget) -> Ruling | None:
    """Return the ruling against an installed torch without an official version, None for an official one."""
    if target.torch is None:
        return None
    label, torch = versions.local(target.torch), target.torch
    if versions.version(torch) is None:
        return broken("torch-known", f"{torch} is not a version", "facts of the environment")
    if label and not versions.official_label(label):
        reason = f"torch {torch} is a custom build (local label {label}): companions built for the release may not fit"
        return broken("torch-known", reason, "facts of the environment")
    return None


def keep_torch(target: FamilyTarget) -> tuple[Build, ...]:
    """Return the installed torch."""
    build = installed_build(target)
    return (build,) if build else ()


def same_release(target: FamilyTarget) -> tuple[Build, ...]:
    """Return the installed release in other CUDA variants: that of the default index first, then the newest CUDA."""
    build = installed_build(target)
    if build is None:
        return ()
    row = tables.default_wheels().get(build.torch)
    default = row.variants.get(target.platform) if row is not None else None
    rows = [item for item in tables.torch_tables().variants if item.torch == build.torch and item.cuda is not None]
    others = [Build(item.torch, item.variant) for item in rows if item.variant != build.variant]

    def rank(item: Build) -> tuple[object, ...]:
        # the default index first: its wheels need no further index
        return (item.row is not None and item.row.published, item.variant == default, versions.dotted(item.cuda or ""))

    return tuple(sorted(others, key=rank, reverse=True))


def same_variant(target: FamilyTarget) -> tuple[Build, ...]:
    """Return all releases in the installed variant: same minor first, then the nearest, newer before older."""
    build = installed_build(target)
    if build is None:
        return ()
    order = list(tables.releases())
    here = _place(order, build.torch)
    rows = [row for row in tables.torch_tables().variants if row.variant == build.variant]

    def rank(torch: str) -> tuple[bool, float, bool]:
        # distance in releases, not in version numbers: 1.13 and 2.0 are neighbours
        distance = order.index(torch) - here
        return (not versions.same_minor(torch, build.torch), abs(distance), distance < 0)

    ranked = sorted((row.torch for row in rows), key=rank)
    return tuple(Build(torch=torch, variant=build.variant, kept=torch == build.torch) for torch in ranked)


def _place(order: list[str], torch: str) -> float:
    """Return the place of a release among those of the data; between two of them for one that is not there."""
    if torch in order:
        return order.index(torch)
    wanted = versions.version(torch)
    if wanted is None:
        return len(order)
    # half a place, so that neither neighbour counts as the same release
    return sum((versions.version(item) or _NO_VERSION) < wanted for item in order) - 0.5


def newest(target: FamilyTarget) -> tuple[Build, ...]:
    """Return every build, newest torch first; of one release: the installed variant, the default one, the newest CUDA.

    Where there are GPUs, CUDA builds come before the CPU build; on a CPU host the installed kind does.
    Builds whose publication is not verified come last, where they only provide the reason that no build fits; where the
    index is asked, after the others of their release.
    """
    build = installed_build(target)
    variant = build.variant if build else None
    default = {torch: row.variants.get(target.platform) for torch, row in tables.default_wheels().items()}
    cpu_first = not target.has_gpus and (variant == "cpu" or variant is None)

    def rank(item: Build) -> tuple[object, ...]:
        published = item.kept or (item.row is not None and item.row.published)
        possible = published or target.query.ask_index
        torch = versions.version(item.torch) or _NO_VERSION
        # a login node has no GPU, but its CUDA build is for the nodes that do
        kind = (item.variant == "cpu") == cpu_first
        cuda = versions.dotted(item.cuda or "")
        wished = (item.variant == variant, item.variant == default.get(item.torch))
        return (possible, torch, kind, published, *wished, cuda)

    rows = (
        Build(
            row.torch, row.variant, kept=build is not None and (row.torch, row.variant) == (build.torch, build.variant)
        )
        for row in tables.torch_tables().variants
    )
    return tuple(sorted(rows, key=rank, reverse=True))


def of_default_index(target: FamilyTarget) -> tuple[Build, ...]:
    """Return the builds that the default index has with all their companions for one CUDA, newest torch first."""
    here = installed_build(target)
    found = []
    for torch in tables.releases():
        variant = pairs.default_torch_variant(torch, target.platform)
        if variant is None:
            continue
        build = Build(torch, variant, kept=here is not None and (torch, variant) == (here.torch, here.variant))
        if pairs.on_default_index(build, target):
            found.append(build)
    return tuple(reversed(found))


POLICIES = {
    "keep-torch": keep_torch,
    "keep-release": same_release,
    "keep-cuda-variant": same_variant,
    "default-index": of_default_index,
    "newest": newest,
}


def candidates(policy: Policy, target: FamilyTarget) -> tuple[Build, ...]:
    """Return the builds that a policy considers, best first."""
    found = POLICIES[policy](target)
    return forward(found, target) if target.query.forward else found


def forward(builds: Iterable[Build], target: FamilyTarget) -> tuple[Build, ...]:
    """Return the builds that are no step back from the installed one, newest torch first, else in their order."""
    here = installed_build(target)
    if here is None:
        return tuple(builds)
    ahead = [item for item in builds if not _behind(item, here)]
    return tuple(sorted(ahead, key=lambda item: versions.parsed(item.torch), reverse=True))


def _behind(build: Build, here: Build) -> bool:
    """Whether a build is of an older torch than the installed one, or of the same torch for an older CUDA."""
    torch, installed = versions.parsed(build.torch), versions.version(here.torch)
    if installed is None or torch != installed:
        return installed is not None and torch < installed
    return versions.dotted(build.cuda or "") < versions.dotted(here.cuda or "")
