"""Verdicts on foreseen changes: whether they undo a repair or break the environment. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from envmedic import limits
from envmedic.compat import versions
from envmedic.compat.torch_family import problems
from envmedic.compat.torch_family.pairs import default_torch_variant, known_variant
from envmedic.compat.torch_family.target import target_of
from envmedic.errors import InputError
from envmedic.model.answers.guard import CondaCommand, GuardVerdict, Harm
from envmedic.model.conda import CondaChange, CondaEnvironment
from envmedic.model.facts import CompanionBuild, Distribution, Environment, Facts, Origin, TorchBuild
from envmedic.model.plan import Change, Plan, Rebuild
from envmedic.model.record import Record
from envmedic.planner.changes.requirement_checks import markers, meets, newly_unmet
from envmedic.planner.family import family_query
from envmedic.planner.family.torch_bound import bound

_SHOWN = 5
_COMPANIONS: tuple[Literal["torchvision", "torchaudio"], ...] = ("torchvision", "torchaudio")
_CUDA_BUILD = re.compile(r"cuda_?(\d{2})\.?(\d)")
"""CUDA release in a conda build string: ``py3.11_cuda12.1_cudnn8.9.2_0``, ``cuda126_generic_py311_0``."""


@dataclass(frozen=True)
class Foreseen:
    """One distribution that a command would install, change, remove, or put in place again."""

    name: str
    """Normalised name of the distribution, or conda's name of a package without one."""
    before: str | None
    after: str | None
    by: str = "pip"
    """The installer of the change: ``pip`` or ``conda``."""
    package: str | None = None
    """Conda's name of the package."""
    build: str | None = None
    """Build string of the new conda package, where the build changes."""

    @property
    def stays(self) -> bool:
        """Whether it is reinstalled unchanged."""
        return self.before == self.after and self.build is None

    @property
    def words(self) -> str:
        """``torch 2.5.1 -> 2.6.0``."""
        name = self.package or self.name
        if self.before == self.after:
            return f"{name} {self.after} again" if self.build is None else f"{name} {self.after} as build {self.build}"
        if self.after is None:
            return f"{name} {self.before} removed"
        return f"{name} {self.before} -> {self.after}" if self.before else f"{name} {self.after} added"


@dataclass(frozen=True)
class Verified:
    """The state in which a repair left a distribution."""

    version: str | None
    """None where the repair removed it."""
    transaction: str
    rebuilt: bool = False
    """Whether it was built on this machine, so that the same release from an index is another build."""
    changed: bool = True
    """Whether the repair changed it. False where the repair was only verified with it."""


@dataclass(frozen=True)
class Standing:
    """The repairs of an environment, with the constraints and pins that keep them."""

    verified: Mapping[str, Verified]
    """By name."""
    transaction: str | None = None
    """The last repair in effect."""
    constraints: tuple[str, ...] = ()
    """Lines of the file of constraints that repairs wrote."""
    constraints_file: str = ""
    pinned: tuple[str, ...] = ()
    """Names in ``conda-meta/pinned``."""


def verified(records: Sequence[Record]) -> dict[str, Verified]:
    """Return the verified state of each distribution by the repairs in effect, newest first."""
    found: dict[str, Verified] = {}
    for record in records:
        plans = (record.plan, *record.extensions)
        # later rounds override earlier ones, and `setdefault` keeps the first state that it sees
        for plan in reversed(plans):
            for name, item in _of_plan(plan, record.transaction):
                found.setdefault(name, item)
        # a repair of one member was verified with the others, so that their change undoes it as well
        if any(change.name in family_query.FAMILY for plan in plans for change in plan.changes):
            for state in record.after:
                if state.name in family_query.FAMILY:
                    found.setdefault(state.name, Verified(state.version, record.transaction, changed=False))
    return found


def _of_plan(plan: Plan, transaction: str) -> Iterator[tuple[str, Verified]]:
    rebuilt = {step.distribution.name for step in plan.steps if isinstance(step, Rebuild)}
    for change in plan.changes:
        name = canonicalize_name(change.name)
        yield name, Verified(change.after, transaction, rebuilt=name in rebuilt)


def changes(environment: Environment, foreseen: Iterable[Foreseen]) -> tuple[Change, ...]:
    """Return the foreseen changes as rows of a table."""
    rows = []
    for item in foreseen:
        old = environment.distribution(item.name)
        rows.append(
            Change(
                kind="remove" if item.after is None else "change" if item.before else "install",
                name=item.package or item.name,
                before=item.before,
                after=item.after,
                owner=old.owner if old else item.by,
            )
        )
    return tuple(sorted(rows, key=lambda row: (row.kind, row.name)))


def harms(facts: Facts, environment: Environment, foreseen: Sequence[Foreseen], standing: Standing) -> tuple[Harm, ...]:
    """Return the harms of the changes: undone repairs first, then broken distributions."""
    found = [
        *(harm for item in foreseen for harm in _undone(item, standing)),
        *(harm for item in foreseen for harm in _against_constraints(item, standing)),
        *(harm for item in foreseen for harm in _second_owner(item, environment)),
        *_family(facts, environment, foreseen),
        *_bound(environment, foreseen),
        *_unmet(facts, environment, foreseen),
    ]
    return tuple(dict.fromkeys(found))


def _undone(item: Foreseen, standing: Standing) -> Iterator[Harm]:
    was = standing.verified.get(canonicalize_name(item.package or item.name)) or standing.verified.get(item.name)
    if was is None or was.version != item.before:
        return  # not repaired, or not as the repair left it any more
    same = item.after == was.version and item.build is None
    if same and not was.rebuilt:
        return
    how = "removed it" if was.version is None else f"put {was.version} in place"
    if not was.changed:
        how = f"was proven with {was.version}"
    # the same version from an index is a wheel that was built for another torch or GPU
    what = f"{item.name} {item.after} would take the place of what was built here" if same else item.words
    yield Harm(
        kind="undoes-repair",
        name=item.name,
        text=f"{what}: the repair {how}",
        source=f"transaction {was.transaction}",
    )


def _against_constraints(item: Foreseen, standing: Standing) -> Iterator[Harm]:
    for line in standing.constraints:
        requirement = _requirement(line)
        if requirement is None or canonicalize_name(requirement.name) != item.name or item.after is None:
            continue
        if not meets(requirement, item.after):
            text = f"{item.name} {item.after} is not what was pinned: {line}"
            yield Harm(kind="constraint", name=item.name, text=text, source=standing.constraints_file)
    name = item.package or item.name
    # conda ignores pins for packages that the command names, and pip never reads them
    if name in standing.pinned and not item.stays:
        how = "conda would override that" if item.by == "conda" else "pip would change it"
        text = f"{name} is pinned for conda, and {how}: {item.words}"
        yield Harm(kind="pin", name=item.name, text=text, source="conda-meta/pinned")


def _requirement(line: str) -> Requirement | None:
    """Return a line of a constraints file as a requirement, None for a comment, an option or an invalid line."""
    try:
        return limits.parsed(line.partition(" #")[0].strip())
    except InvalidRequirement:
        return None


def _second_owner(item: Foreseen, environment: Environment) -> Iterator[Harm]:
    owners = {found.owner for found in environment.distributions if found.name == item.name}
    if item.by == "pip" and "conda" in owners:
        does = "remove the files of" if item.after is None else "put a copy over"
        text = f"pip would {does} {item.name} {item.before}, which conda installed and goes on to list as its own"
        yield Harm(kind="second-owner", name=item.name, text=text, source="conda-meta")
    if item.by == "conda" and item.after is not None and owners - {"conda"}:
        text = f"conda would put {item.package or item.name} {item.after} over the copy that pip installed"
        yield Harm(kind="second-owner", name=item.name, text=text, source="metadata of the distribution")


def _after(foreseen: Iterable[Foreseen]) -> dict[str, str | None]:
    return {item.name: item.after for item in foreseen if not item.stays}


def _unmet(facts: Facts, environment: Environment, foreseen: Iterable[Foreseen]) -> Iterator[Harm]:
    values = markers(environment, facts.host)
    for item in newly_unmet(environment, _after(foreseen), values=values):
        name = item.distribution.partition(" ")[0]
        yield Harm(kind="requirement", name=name, text=item.sentence(), source=f"metadata of {name}")


def _bound(environment: Environment, foreseen: Iterable[Foreseen]) -> Iterator[Harm]:
    after, torch = _after(foreseen), environment.distribution("torch")
    if torch is None or "torch" not in after:
        return
    for item, how in bound(environment):
        if item.name not in after:
            text = f"{item.name} {item.version} is bound to the installed torch {torch.version}: {how}"
            yield Harm(kind="bound", name=item.name, text=text, source=f"facts of {item.name}")


def _family(facts: Facts, environment: Environment, foreseen: Sequence[Foreseen]) -> Iterator[Harm]:
    """Yield new incoherences of torch with its companions, the driver and the GPUs."""
    after = _after(foreseen)
    if not any(name in after for name in family_query.FAMILY):
        return
    later = _later(facts, environment, foreseen)
    # a problem that exists today is not the command's doing
    before = {item.summary for item in problems.problems(environment, facts.host)}
    for problem in problems.problems(later, facts.host):
        if problem.summary not in before:
            yield Harm(kind="torch-family", name=problem.member, text=problem.summary, source=problem.source)
    old, new = environment.torch, later.torch
    if old is not None and old.cuda and new is not None and new.variant == "cpu":
        text = f"torch {new.version} is a build for the CPU alone, torch {old.version} one for CUDA {old.cuda}"
        yield Harm(kind="torch-family", name="torch", text=text, source="index metadata")


def notes(facts: Facts, environment: Environment, foreseen: Sequence[Foreseen]) -> tuple[str, ...]:
    """Return what changes without harm and is seldom meant: a torch for the CPU becomes one for CUDA."""
    old = environment.torch
    new = _later(facts, environment, foreseen).torch
    if old is None or old.variant != "cpu" or new is None or not new.cuda:
        return ()
    text = f"torch {new.version} is a build for CUDA {new.cuda}, torch {old.version} one for the CPU alone"
    if facts.host.driver_version is None:
        # it is imported and computes without a driver, so nothing breaks
        text += "; without an NVIDIA driver, as here, it computes on the CPU too, and is larger by its CUDA libraries"
    return (text,)


def _later(facts: Facts, environment: Environment, foreseen: Sequence[Foreseen]) -> Environment:
    """Return the environment after the changes, as far as versions tell."""
    after, condas = _after(foreseen), {item.name: item.build or "" for item in foreseen if item.by == "conda"}
    stay = [item for item in environment.distributions if item.name not in after]
    new = [
        Distribution(name=name, version=version, metadata_path="", site="", origin=Origin(kind="unknown"))
        for name, version in after.items()
        if version is not None
    ]
    torch = after.get("torch")
    build = (
        environment.torch
        if "torch" not in after
        else _build(facts, environment, torch, condas.get("torch"))
        if torch
        else None
    )
    return msgspec.structs.replace(
        environment,
        distributions=(*stay, *new),
        companions=(
            *(item for item in environment.companions if item.name not in after),
            *_companions(facts, environment, {name: text for name, text in after.items() if name not in condas}),
        ),
        torch=build,
    )


def _build(facts: Facts, environment: Environment, version: str, conda: str | None) -> TorchBuild:
    if conda is not None:
        cuda = _CUDA_BUILD.search(conda)
        variant = f"cu{cuda[1]}{cuda[2]}" if cuda else "cpu" if "cpu" in conda else None
        return TorchBuild(version=version, cuda=f"{cuda[1]}.{cuda[2]}" if cuda else None, variant=variant)
    platform = target_of(family_query.query(facts, environment, ("torch",), ("newest",))).platform
    # a wheel without a label comes from the default index, which has one variant per release and platform
    variant = versions.local(version) or default_torch_variant(versions.public(version), platform)
    return TorchBuild(version=version, cuda=versions.variant_cuda(variant) if variant else None, variant=variant)


def _companions(facts: Facts, environment: Environment, after: Mapping[str, str | None]) -> Iterator[CompanionBuild]:
    """Yield the builds of new companions, as far as the data know those of the default index; others are no problem."""
    platform = target_of(family_query.query(facts, environment, ("torch",), ("newest",))).platform
    for name in _COMPANIONS:
        version = after.get(name)
        variant = version and (versions.local(version) or known_variant(name, version, platform))
        if version and variant:
            yield CompanionBuild(name=name, version=version, cuda=versions.variant_cuda(variant), variant=variant)


def require_installed(command: CondaCommand, conda: CondaEnvironment) -> None:
    """Raise InputError for a package to update or remove that is not installed."""
    names = [pinned_name(text) for text in command.specs]
    absent = [name for name in names if command.verb != "install" and conda.package(name) is None]
    if absent:
        raise InputError(
            f"{', '.join(absent)} is not installed by conda",
            cause=f"`{command.tool} {command.verb}` would end in an error",
            hint="Ask about packages that `conda list` shows",
        )


def unasked(foreseen: Iterable[Foreseen], named: Collection[str]) -> tuple[Harm, ...]:
    """Return a harm for each member of the torch family that would be removed without being named."""
    return tuple(
        Harm(
            kind="torch-family",
            name=item.name,
            text=f"{item.words}, along with what is asked for",
            source="the solver",
        )
        for item in foreseen
        if item.after is None and item.name in family_query.FAMILY and not {item.name, item.package or ""} & set(named)
    )


def of_change(change: CondaChange, conda: CondaEnvironment) -> tuple[Foreseen, ...]:
    """Return conda's changes by distribution, and by package name for packages without distributions."""
    new = {item.name: item for item in change.install}
    found: list[Foreseen] = []
    for old in change.remove:
        come = new.pop(old.name, None)
        names = old.distributions or (old.name,)
        build = come.build if come is not None and come.build != old.build else None
        after = None if come is None else come.version
        found += (Foreseen(name, old.version, after, by="conda", package=old.name, build=build) for name in names)
    for item in new.values():
        package = conda.package(item.name)
        names = item.distributions or (_PYTHON_NAMES.get(item.name, item.name),)
        before = package.version if package is not None else None
        found += (
            Foreseen(name, before, item.version, by="conda", package=item.name, build=item.build) for name in names
        )
    return tuple(found)


_PYTHON_NAMES = {"pytorch": "torch", "pytorch-gpu": "torch", "pytorch-cpu": "torch"}
"""Distributions of packages that are not installed yet, where the names differ."""


def pinned_name(spec: str) -> str:
    """Return the package name of a match spec: ``pytorch`` for ``conda-forge::pytorch 2.3.*``."""
    return re.split(r"[\s=<>!~\[]", spec.rpartition("::")[2].strip(), maxsplit=1)[0].lower()


def verdict(found: Sequence[Harm]) -> GuardVerdict:
    """Return the verdict for these harms."""
    if not found:
        return "harmless"
    kept = {"undoes-repair", "constraint", "pin"}
    return "undoes-repair" if any(item.kind in kept for item in found) else "breaks"


def summary(foreseen: Sequence[Foreseen], found: Sequence[Harm]) -> str:
    """Return the verdict as one sentence."""
    if found:
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        return f"{found[0].text}{more}"
    if not foreseen:
        return "it changes nothing"
    told = ", ".join(item.words for item in foreseen[:_SHOWN])
    rest = f" and {len(foreseen) - _SHOWN} more" if len(foreseen) > _SHOWN else ""
    return f"nothing that was repaired or that others need is touched: {told}{rest}"
