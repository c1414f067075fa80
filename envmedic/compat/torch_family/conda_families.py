"""Coherent torch families of conda channels, and the match specs that request them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from envmedic.compat import gpu, tables, versions
from envmedic.compat.conda_tables import (
    Flavour,
    FlavourName,
    conda_tables,
    distribution_names,
    library_patterns,
    package_names,
)
from envmedic.compat.gpu import BuildGpuCode
from envmedic.compat.table_rows import ChannelBuilds, Companion
from envmedic.compat.torch_family import candidates, pairs, rules
from envmedic.compat.torch_family.rules import Build
from envmedic.compat.torch_family.ruling import Ruling, broken, passed
from envmedic.compat.torch_family.target import FamilyTarget, target_of
from envmedic.model.answers.family import FamilyAnswer, FamilyQuery, FamilySet, RejectedSet
from envmedic.model.conda import CondaPackage
from envmedic.model.playbook import Policy

SETS_PER_POLICY = 3
"""Highest number of sets proposed for one policy."""
COMPANIONS = ("torchvision", "torchaudio")


@dataclass(frozen=True)
class _Offer:
    """A torch build of a channel."""

    build: Build
    code: tuple[str, ...] = ()
    """Capabilities with machine code, where the data have them from the binary."""
    source: tuple[str, ...] = ()


def package_of(distribution: str) -> str:
    """Return the conda package that usually contains a distribution of that normalised name."""
    return package_names().get(distribution, distribution)


def distribution_of(package: str) -> str:
    """Return the distribution that a conda package of that name usually contains."""
    return distribution_names().get(package, package.lower().replace("_", "-").replace(".", "-"))


def is_library(package: str) -> bool:
    """Whether a conda package is a part of CUDA that torch depends on."""
    return any(fnmatchcase(package, pattern) for pattern in library_patterns())


def flavour(name: FlavourName) -> Flavour:
    """Return the row of a flavour."""
    return next(row for row in conda_tables().flavours if row.flavour == name)


def flavour_of(torch: CondaPackage) -> Flavour:
    """Return the flavour of an installed ``pytorch``: by a distinctive build string, else by its channel."""
    old, forge, defaults = (flavour(name) for name in ("pytorch", "conda-forge", "defaults"))
    # the build string first: a mirror may serve packages of all channels under one name
    if re.fullmatch(old.build, torch.build):
        return old
    if torch.build.startswith("gpu_"):
        return defaults
    by_channel = {row.channel: row for row in conda_tables().flavours} | {"defaults": defaults}
    return by_channel.get(torch.channel.rstrip("/").rpartition("/")[2], forge)


def variant_of(torch: CondaPackage) -> str | None:
    """Return ``cu121`` or ``cpu`` for an installed ``pytorch``, None where the build string does not tell."""
    match = re.fullmatch(flavour_of(torch).build, torch.build)
    if match is None:
        return None
    found = match.groupdict()
    if found.get("digits") or found.get("cuda"):
        return "cu" + (found.get("digits") or str(found["cuda"]).replace(".", ""))
    # `gpu_…` of defaults is a CUDA build that does not name its CUDA version
    return None if torch.build.startswith("gpu") else "cpu"


def specs(row: Flavour, found: FamilySet, changed: Iterable[str]) -> tuple[str, ...]:
    """Return match specs of the `changed` members of a set in a flavour, and of the package that selects CUDA."""
    # conda's pytorch depends on its own triton, under different names in different channels
    names = [name for name in changed if name != "triton"]
    cuda = versions.variant_cuda(found.variant)
    asked = [f"{package_of(name)}={found.versions[name]}" for name in names if name != "torch"]
    if "torch" not in names:
        return tuple(asked)
    pattern = row.cpu_build if cuda is None else row.cuda_build
    build = pattern.format(cuda=cuda, digits=(cuda or "").replace(".", ""))
    # with a build string: conda would otherwise choose a CPU build where the solver finds that easier
    torch = f"pytorch {found.versions['torch']} {build}"
    selector = _selector(row, found)
    return (torch, *asked, *((selector,) if selector else ()))


def answers(spec: str, package: CondaPackage) -> bool:
    """Whether an installed package matches one of `specs`, of the form ``name=version`` or ``name version build``."""
    name, version, build = (*spec.replace("=", " =").split(), "", "")[:3]
    series = version.removeprefix("=").removesuffix(".*")
    there = package.version == series or (version != series and package.version.startswith(f"{series}."))
    return package.name == name and (there or not version) and fnmatchcase(package.build, build or "*")


def _selector(row: Flavour, found: FamilySet) -> str | None:
    torch, cuda = versions.parsed(found.versions["torch"]), versions.variant_cuda(found.variant)
    for item in row.selectors:
        if versions.parsed(item.first) <= torch and (item.last is None or torch <= versions.parsed(item.last)):
            return item.cpu if cuda is None else item.cuda.format(cuda=cuda)
    return None


def against(variant: str) -> tuple[str, ...]:
    """Return the packages that select another kind of build than `variant`, and must be removed."""
    cuda = versions.variant_cuda(variant) is not None
    return ("cpuonly", "pytorch-cpu") if cuda else ("pytorch-cuda", "pytorch-gpu")


def answer(query: FamilyQuery, row: Flavour) -> FamilyAnswer:
    """Return the coherent sets of a flavour by the data, ranked by the policies of `query`, and the rejected ones.

    The solver decides whether a build exists for the interpreter and fits the rest of the environment.
    """
    target = target_of(query)
    sets: list[FamilySet] = []
    rejected: dict[tuple[str, str], RejectedSet] = {}
    seen: set[tuple[str, str]] = set()
    for policy in dict.fromkeys(query.policies):
        torch: set[str] = set()
        for offer in _candidates(policy, target, row):
            key = (offer.build.torch, offer.build.variant)
            if key in seen or offer.build.torch in torch or len(torch) >= SETS_PER_POLICY:
                continue
            seen.add(key)
            made = _evaluate(offer, policy, target, row)
            if isinstance(made, FamilySet):
                sets.append(made)
                torch.add(offer.build.torch)
            else:
                rejected.setdefault((policy, made.rule), _rejected(policy, offer, made, row))
    if not sets and not rejected:
        rejected["", ""] = _nothing(query, row)
    return FamilyAnswer(sets=tuple(sets), rejected=tuple(rejected.values()))


def _rejected(policy: Policy, offer: _Offer, ruling: Ruling, row: Flavour) -> RejectedSet:
    title = f"{policy}: {offer.build.title()} from conda ({row.flavour})"
    ended = f"; the channel ended with torch {row.last}" if row.last is not None and policy == "newest" else ""
    source = "; ".join(filter(None, (ruling.source, row.ended if ended else None)))
    return RejectedSet(title=title, rule=ruling.rule, reason=ruling.reason + ended, source=source)


def _nothing(query: FamilyQuery, row: Flavour) -> RejectedSet:
    torch = query.installed.get("torch", "of that kind")
    reason = f"no build of torch {torch} is known there that these policies allow: {', '.join(query.policies)}"
    if row.last is not None:
        reason += f"; the channel ended with torch {row.last}"
    source = row.ended or "; ".join(row.source)
    return RejectedSet(title=f"torch from conda ({row.flavour})", rule="channel-build", reason=reason, source=source)


def _candidates(policy: Policy, target: FamilyTarget, row: Flavour) -> Iterator[_Offer]:
    """Yield the builds that a policy considers, best first."""
    installed = candidates.installed_build(target)
    # a ROCm or XPU build is not for NVIDIA's GPUs, and no repair turns it into a CUDA build
    if installed is not None and candidates.foreign_backend(installed):
        return
    if policy == "default-index":
        return  # channels have a build of each companion for each torch
    if policy == "keep-torch":
        if installed is not None and installed.variant != candidates.UNKNOWN_VARIANT:
            yield _Offer(installed)
        return
    offers = list(_offers(row, target))
    if policy == "keep-release":
        offers = [
            item
            for item in offers
            if installed
            and item.build.torch == installed.torch
            and item.build.variant not in {installed.variant, "cpu"}
        ]
    elif policy == "keep-cuda-variant":
        offers = [item for item in offers if installed and item.build.variant == installed.variant]
    ranked = sorted(offers, key=lambda item: _rank(item.build, installed, policy, target), reverse=True)
    if target.query.forward:
        kept = candidates.forward((item.build for item in ranked), target)
        ranked = sorted((item for item in ranked if item.build in kept), key=lambda item: kept.index(item.build))
    yield from ranked


def _rank(build: Build, installed: Build | None, policy: Policy, target: FamilyTarget) -> tuple[object, ...]:
    torch, cuda = versions.parsed(build.torch), versions.dotted(build.cuda or "")
    same = installed is not None and build.variant == installed.variant
    if policy == "keep-cuda-variant" and installed is not None:
        order = list(tables.releases())
        places = [order.index(item) if item in order else len(order) for item in (build.torch, installed.torch)]
        return versions.same_minor(build.torch, installed.torch), -abs(places[0] - places[1]), torch
    cpu_first = not target.has_gpus and (installed is None or installed.variant == "cpu")
    return torch, (build.variant == "cpu") == cpu_first, same, cuda


def _offers(row: Flavour, target: FamilyTarget) -> Iterator[_Offer]:
    """Yield every build of torch that a flavour has by the data, or is expected to have."""
    if row.flavour == "defaults":
        for known in conda_tables().builds:
            yield from _of_versions(known.torch, (*known.cuda, "cpu"), known.source)
        return
    rows = [item for item in tables.torch_tables().conda if item.channel == row.channel]
    latest: tuple[str, ...] = ()
    for item in rows:
        if item.cuda is not None:
            yield _Offer(Build(item.torch, _variant(item.cuda)), item.arch_in_binary, item.source)
            continue
        listed = _listed(item, target)
        if listed is not None:
            latest = listed
        elif item.builds != "none" and row.last is None:
            listed = latest  # the data do not know the builds of a new release; expect those of the release before
        yield from _of_versions(item.torch, listed or (), item.source)
    for torch in dict.fromkeys(item.torch for item in rows if item.cuda is not None):
        # every release of the pytorch channel also has a CPU build, which the table of CUDA builds leaves out
        yield _Offer(Build(torch, "cpu"), source=row.source)


def _of_versions(torch: str, listed: Iterable[str], source: tuple[str, ...]) -> Iterator[_Offer]:
    return (_Offer(Build(torch, _variant(cuda)), source=source) for cuda in listed)


def _variant(cuda: str) -> str:
    return cuda if cuda == "cpu" else "cu" + cuda.replace(".", "")


def _listed(item: ChannelBuilds, target: FamilyTarget) -> tuple[str, ...] | None:
    found = item.linux_aarch64 if target.platform == "linux_aarch64" else item.linux_64
    return found if isinstance(found, tuple) else None


def _evaluate(offer: _Offer, policy: Policy, target: FamilyTarget, row: Flavour) -> FamilySet | Ruling:
    """Apply every rule to a build with its companions, and return the set, or the first broken rule."""
    build, found = offer.build, {"torch": offer.build.torch}
    rulings = [
        rules.check_platform(target),
        rules.check_gpu_required(build, target),
        rules.check_driver(build, target),
        # the installed build was observed; conda compiles for other architectures than the wheels that `rules` knows
        rules.check_coverage(build, target) if build.kept else _coverage(offer, target),
        rules.check_nvrtc(build, target),
    ]
    for member in COMPANIONS:
        if member not in target.query.members:
            continue
        chosen = _companion(build, target, member)
        if chosen is None:
            rulings.append(broken(f"{member}-pair", f"no {member} is known for torch {build.torch}", "index metadata"))
        else:
            found[member] = chosen.version
            rulings.append(
                passed(f"{member}-pair", f"{member} {chosen.version} goes with {build.torch}", chosen.source)
            )
    wrong = next((item for item in rulings if not item.ok), None)
    if wrong is not None:
        return wrong
    reasons = (*(item.sentence() for item in rulings), f"channel-build: {row.flavour} [{'; '.join(offer.source)}]")
    return FamilySet(variant=build.variant, versions=found, policy=policy, reasons=reasons)


def _coverage(offer: _Offer, target: FamilyTarget) -> Ruling:
    """Rule: every visible GPU runs the code of conda's build, or, where that is unknown, its compiler knows the GPU."""
    build, toolkit = offer.build, tables.toolkits().get(offer.build.cuda or "")
    if build.cuda is None or not target.has_gpus:
        return passed("gpu-coverage", "a CPU build" if build.cuda is None else "no GPU is visible")
    if offer.code:
        code = BuildGpuCode(sass=offer.code, ptx=(), cuda=build.cuda, source="; ".join(offer.source))
        missing = gpu.uncovered(code, target.capabilities, target.driver)
        told = f"{build.title()} of that channel has no code for compute capability {', '.join(missing)}"
        return broken("gpu-coverage", told, offer.source) if missing else passed("gpu-coverage", "by its binary")
    if toolkit is None:
        return broken("gpu-coverage", f"which GPUs CUDA {build.cuda} compiles for is not known", offer.source)
    low, high = (versions.dotted(text) for text in (toolkit.nvcc_min, toolkit.nvcc_max))
    beyond = [item for item in target.capabilities if not low <= versions.dotted(item) <= high]
    if beyond:
        reason = f"CUDA {build.cuda} compiles for compute capability {toolkit.nvcc_min} to {toolkit.nvcc_max}"
        return broken("gpu-coverage", f"{reason}, the GPU has {', '.join(beyond)}", toolkit.source)
    return passed("gpu-coverage", f"CUDA {build.cuda} compiles for {', '.join(target.capabilities)}", toolkit.source)


def _companion(build: Build, target: FamilyTarget, member: str) -> Companion | None:
    """Return the installed companion where torch stays and it fits, else the recommended release."""
    fitting = [
        item for item in tables.companions(member).values() if pairs.accepts(item, build.torch) and not item.yanked
    ]
    installed = target.installed(member)
    return max(
        fitting,
        key=lambda item: (
            build.kept and item.version == installed,
            build.torch in item.recommended_for,
            versions.parsed(item.version),
        ),
        default=None,
    )
