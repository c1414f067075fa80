"""What one proposal is made from; on a conda prefix, for each way to settle who owns what. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from envmedic.compat import tables
from envmedic.compat.conda_tables import Flavour
from envmedic.compat.torch_family import conda_families as channels
from envmedic.model.conda import CondaEnvironment
from envmedic.model.facts import Environment, Host
from envmedic.model.family import FamilySet
from envmedic.model.playbook import TorchFamilyStep
from envmedic.model.ports import ResolveRequest
from envmedic.planner.changes.ownership import Owners
from envmedic.planner.conda_split.ownership_options import Side, sides
from envmedic.planner.family import family_query
from envmedic.planner.remedies.building import BuildInputs
from envmedic.planner.requested_changes import RequestedChanges


@dataclass(frozen=True)
class Options:
    """What the user decided about where wheels come from."""

    find_links: tuple[str, ...] = ()
    offline: bool = False
    torch_index: str = ResolveRequest(pins=()).torch_index


@dataclass(frozen=True)
class ProposalCase:
    """Everything that one proposal is made from."""

    environment: Environment
    host: Host
    wanted: RequestedChanges
    options: Options
    values: Mapping[str, str]
    """Marker variables of the environment's interpreter on that host."""
    builds: BuildInputs
    """What builds of extensions are given."""
    before: Environment | None = None
    """A conda prefix as it was observed."""
    side: Side | None = None
    """Whose the distributions of a conda prefix are in this way; `environment` is as that leaves it."""
    flavour: Flavour | None = None
    """The channel that the family comes from where it is conda's."""
    moving: bool = False
    """Whether nothing is at fault, and the family is to be moved on: what requires the old one comes along."""

    @property
    def by_conda(self) -> bool:
        """Whether conda brings the family."""
        return self.side is not None and self.side.by_conda


def family_step(case: ProposalCase) -> TorchFamilyStep | None:
    """What the playbook asks of the family; where torch gets another owner, a set that keeps it is needed as well."""
    step = case.wanted.family
    if case.side is None or not case.side.torch_moves:
        return step
    policies = step.policy if step is not None else ("keep-torch",)
    if "keep-torch" in policies and not case.by_conda and "keep-release" not in policies:
        place = policies.index("keep-torch") + 1
        policies = (*policies[:place], "keep-release", *policies[place:])
    return TorchFamilyStep(policy=policies)  # all members get the new owner, also those that the playbook leaves alone


def cases(case: ProposalCase) -> tuple[ProposalCase, ...]:
    """The case on each side of a conda prefix: who owns what, best first, and where conda's torch comes from."""
    environment, wanted = case.environment, case.wanted
    owners = Owners(environment)
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
    """Where conda can take torch from: where the installed one is from, else where its Python is from."""
    conda = environment.conda or CondaEnvironment()
    torch, python = conda.package("pytorch"), conda.package("python")
    if torch is None:
        return (None,)
    forge = channels.flavour("conda-forge")
    found: list[Flavour | None] = [channels.flavour_of(torch)]
    if python is not None and python.channel.rstrip("/").endswith("conda-forge") and forge not in found:
        found.append(forge)
    return tuple(found)


def suffix(case: ProposalCase) -> str:
    """What tells the ways of a conda prefix apart."""
    if case.side is None or (case.flavour is None and not case.side.moved):
        return ""
    if case.flavour is None:
        return ", as wheels"
    return f", by conda ({case.flavour.flavour})"


def cuda_build(side: Side) -> bool | None:
    """Whether the torch that a way uncovers is a CUDA build; None where what is on disk tells."""
    build = side.environment.torch
    return build.cuda is not None if side.torch_moves and side.by_conda and build is not None else None


def no_wheel(case: ProposalCase, found: FamilySet) -> str:
    """Why a set that keeps conda's torch cannot be had as wheels; empty where it can, or where torch stays."""
    side, before = case.side, case.before
    if side is None or before is None or "torch" not in side.moved or Owners(before).wheels("torch"):
        return ""
    row = tables.variants().get((found.versions["torch"], found.variant))
    if row is not None and row.published:
        return ""
    return f"there is no wheel of torch {found.versions['torch']} in the variant {found.variant}"
