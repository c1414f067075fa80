"""Inputs of one proposal. A conda prefix has one case for each assignment of owners. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from envmedic.compat import tables
from envmedic.compat.conda_tables import Flavour
from envmedic.compat.torch_family import conda_families as channels
from envmedic.model.answers.family import FamilySet
from envmedic.model.conda import CondaEnvironment
from envmedic.model.facts import Environment, Host
from envmedic.model.pins import UserPin
from envmedic.model.playbook import TorchFamilyStep
from envmedic.model.ports import ResolveRequest
from envmedic.planner.changes.ownership import Owners
from envmedic.planner.conda_split.ownership_options import Side, sides
from envmedic.planner.family import family_query
from envmedic.planner.remedies.building import BuildInputs
from envmedic.planner.requested_changes import RequestedChanges


@dataclass(frozen=True)
class Options:
    """The user's choice of sources for wheels, and limits on versions."""

    find_links: tuple[str, ...] = ()
    offline: bool = False
    torch_index: str = ResolveRequest(pins=()).torch_index
    pins: tuple[UserPin, ...] = ()
    """The user's limits that hold for the environment."""
    lifts_pins: bool = False
    """Whether some of them do not bind."""


@dataclass(frozen=True)
class ProposalCase:
    """All inputs of one proposal."""

    environment: Environment
    host: Host
    wanted: RequestedChanges
    options: Options
    values: Mapping[str, str]
    """Marker variables of the environment's interpreter on that host."""
    builds: BuildInputs
    """Toolchain and settings for builds of extensions."""
    before: Environment | None = None
    """A conda prefix as it was observed."""
    side: Side | None = None
    """The owners of distributions in this case, of a conda prefix; `environment` is the state with these owners."""
    flavour: Flavour | None = None
    """The channel of the family where conda owns it."""
    moving: bool = False
    """Whether the family moves to other releases without a fault; its dependents then move too."""

    @property
    def by_conda(self) -> bool:
        """Whether conda owns the family."""
        return self.side is not None and self.side.by_conda


def family_step(case: ProposalCase) -> TorchFamilyStep | None:
    """Return the playbook's family step, or one that keeps torch where only its owner changes."""
    step = case.wanted.family
    if case.side is None or not case.side.torch_moves:
        return step
    policies = step.policy if step is not None else ("keep-torch",)
    # Conda's CUDA variant often has no wheel: the same release in another variant is the nearest that wheels can
    # give.
    if "keep-torch" in policies and not case.by_conda and "keep-release" not in policies:
        place = policies.index("keep-torch") + 1
        policies = (*policies[:place], "keep-release", *policies[place:])
    # without members of the step: all get the new owner, also those that the playbook leaves alone
    return TorchFamilyStep(policy=policies)


def cases(case: ProposalCase) -> tuple[ProposalCase, ...]:
    """Return the cases of a conda prefix, best first: assignments of owners, with channels for conda's torch."""
    environment, wanted = case.environment, case.wanted
    owners = Owners(environment)
    # a reinstalled conda package takes back the files of wheels over it, so these distributions are involved too
    again = [item for item in owners.conda.packages if item.name in wanted.reinstalled]
    names = {
        *wanted.purged,
        *wanted.replaced,
        *(canonicalize_name(Requirement(pin).name) for pin in wanted.pins),
        *(name for item in again for name in (*item.distributions, *owners.over(item.name))),
    }
    torch = wanted.family is not None or bool(names & set(family_query.FAMILY))
    found = sides(environment, sorted(names), torch=torch, values=case.values)
    return tuple(
        replace(case, environment=side.environment, before=environment, side=side, flavour=flavour)
        for side in found
        for flavour in (_flavours(environment) if side.by_conda and torch else (None,))
    )


def _flavours(environment: Environment) -> tuple[Flavour | None, ...]:
    """Return the channels for conda's torch: the installed one's, then conda-forge where Python is from there."""
    conda = environment.conda or CondaEnvironment()
    torch, python = conda.package("pytorch"), conda.package("python")
    if torch is None:
        return (None,)
    forge = channels.flavour("conda-forge")
    # The `pytorch` channel ended with torch 2.5, so a prefix from it may need conda-forge. Mixing it with Python from
    # `defaults` is not tried: the two channels are binary incompatible.
    found: list[Flavour | None] = [channels.flavour_of(torch)]
    if python is not None and python.channel.rstrip("/").endswith("conda-forge") and forge not in found:
        found.append(forge)
    return tuple(found)


def suffix(case: ProposalCase) -> str:
    """Suffix of a title that tells the cases of a conda prefix apart."""
    if case.side is None or (case.flavour is None and not case.side.moved):
        return ""
    if case.flavour is None:
        return ", as wheels"
    return f", by conda ({case.flavour.flavour})"


def cuda_build(side: Side) -> bool | None:
    """Whether conda's torch under a removed wheel is a CUDA build; None where the files on disk tell."""
    build = side.environment.torch
    # the observed torch is the wheel that goes; only conda's build string describes the one below
    return build.cuda is not None if side.torch_moves and side.by_conda and build is not None else None


def no_wheel(case: ProposalCase, found: FamilySet) -> str:
    """Return why a set that keeps conda's torch has no wheels; empty where it has, or where torch stays."""
    side, before = case.side, case.before
    if side is None or before is None or "torch" not in side.moved or Owners(before).wheels("torch"):
        return ""
    row = tables.variants().get((found.versions["torch"], found.variant))
    if row is not None and row.published:
        return ""
    return f"there is no wheel of torch {found.versions['torch']} in the variant {found.variant}"
