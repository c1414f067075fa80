"""Division of one change of a conda prefix between conda and the installer of wheels. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from envmedic.compat.conda_tables import Flavour, family_packages
from envmedic.compat.torch_family import conda_families as channels
from envmedic.conda_meta import specs as conda_specs
from envmedic.model.answers.family import FamilySet
from envmedic.model.conda import CondaRequest
from envmedic.model.plan import Pin, Step
from envmedic.planner.changes.ownership import Owners
from envmedic.planner.conda_split import match_specs
from envmedic.planner.conda_split.ownership_options import Side
from envmedic.planner.conda_split.removal_closure import NEVER, siblings
from envmedic.planner.family.family_query import FAMILY


@dataclass(frozen=True)
class DistributionChanges:
    """Requested changes of distributions, regardless of their owners."""

    found: FamilySet | None
    changed: tuple[str, ...]
    """Members of the family to install."""
    requirements: tuple[str, ...]
    """Requirements on other distributions."""
    gone: tuple[str, ...]
    """Distributions whose installed copies are removed."""
    reinstalled: tuple[str, ...] = ()
    """Conda packages to be put in place again, and match specs of missing ones."""
    offline: bool = False


@dataclass(frozen=True)
class Shares:
    """The part of each installer in a change."""

    conda: CondaRequest | None
    wheels: tuple[str, ...]
    """Requirements to meet with wheels, members of the family included."""
    purged: tuple[str, ...]
    """Distributions whose wheels are removed."""


@dataclass(frozen=True)
class _Asked:
    """A request to conda under construction."""

    specs: list[str] = field(default_factory=list)
    again: list[str] = field(default_factory=list)
    remove: list[str] = field(default_factory=list)


class Divider:
    """Divides changes by the owners of one side."""

    def __init__(self, side: Side, flavour: Flavour | None) -> None:
        self.side = side
        self.flavour = flavour
        self.owners = Owners(side.environment)

    def is_condas(self, name: str) -> bool:
        """Whether conda owns a distribution afterwards. It owns a new one where only conda's packages require it."""
        if name in FAMILY:
            return self.side.by_conda
        if name in self.side.moved:
            return False
        kind = self.owners.kind(name)
        return kind == "conda" or (kind == "none" and self._wanted_by_conda(name))

    def _wanted_by_conda(self, name: str) -> bool:
        asking = [item for item in self.side.environment.distributions if name in _names(item.requires)]
        return bool(asking) and all(self.owners.is_condas(item) for item in asking)

    def package(self, name: str) -> str:
        """Return the conda package that contains a distribution."""
        found = self.owners.package(name)
        return found.name if found is not None else channels.package_of(name)

    def shares(self, wish: DistributionChanges) -> Shares:
        """Divide requested changes between conda and wheels."""
        every = [item for item in map(Requirement, wish.requirements) if not self._settled(item, wish)]
        asked: dict[str, list[Requirement]] = {}
        for item in every:
            asked.setdefault(canonicalize_name(item.name), []).append(item)
        condas = {name: match_specs.joined(name, items) for name, items in asked.items() if self.is_condas(name)}
        wheels = [str(item) for item in every if canonicalize_name(item.name) not in condas]
        purged = (
            name for name in (*wish.gone, *self.side.purged) if name in self.side.purged or self.owners.wheels(name)
        )
        return Shares(
            conda=self._request(wish, condas),
            wheels=(
                *self._family(wish),
                *wheels,
                *self._along({*asked, *wish.changed, *(set(wish.gone) - self.side.decided)}),
            ),
            purged=tuple(dict.fromkeys(purged)),
        )

    def _settled(self, requirement: Requirement, wish: DistributionChanges) -> bool:
        """Whether the family's set, or the decision on a doubly owned distribution, already answers a requirement."""
        name = canonicalize_name(requirement.name)
        if wish.found is not None and name in wish.found.versions:
            return True
        # an exact pin repeats the version of one copy, between which ownership has decided; a range is a wish of its
        # own
        exact = any(item.operator in {"==", "==="} for item in requirement.specifier)
        return name in self.side.decided and exact

    def _family(self, wish: DistributionChanges) -> tuple[str, ...]:
        """Exact pins of the family's wheels, without the triton that a changed torch pins itself."""
        if wish.found is None or self.side.by_conda:
            return ()
        names = [name for name in wish.changed if not (name == "triton" and "torch" in wish.changed)]
        return tuple(f"{name}=={wish.found.versions[name]}" for name in names)

    def _along(self, handled: set[str]) -> tuple[str, ...]:
        """Pins of wheels for dependents that leave conda too, in their present versions."""
        names = sorted(self.side.moved - handled - set(FAMILY))
        found = ((name, self.side.environment.distribution(name)) for name in names)
        return tuple(f"{name}=={item.public}" for name, item in found if item is not None)

    def _request(self, wish: DistributionChanges, condas: dict[str, Requirement]) -> CondaRequest | None:
        asked = _Asked(again=[*self.side.reinstall], remove=[*self.side.leaving.packages])
        for text in wish.reinstalled:
            there = self.owners.conda.package(text) is not None
            (asked.again if there else asked.specs).append(text)
        for name, requirement in condas.items():
            package, installed = self.package(name), self.owners.package(name)
            # the solver sees nothing to do for an installed version; files are restored only by a reinstallation
            if installed is not None and match_specs.pins(requirement, installed.version):
                asked.again.append(package)
            else:
                asked.specs.append(match_specs.spec(package, requirement))
        if self.side.by_conda and wish.found is not None and wish.changed and self.flavour is not None:
            self._add_family(self.flavour, wish.found, wish.changed, asked)
        asked.remove.extend(self._without(wish, {*condas, *wish.changed, *self.side.moved}, asked.again))
        # a removal excludes a reinstallation: removed packages may be requested under another name
        kept = [name for name in dict.fromkeys(asked.again) if name not in asked.remove]
        if not (asked.specs or kept or asked.remove):
            return None
        return CondaRequest(
            specs=tuple(dict.fromkeys(asked.specs)),
            remove=tuple(dict.fromkeys(asked.remove)),
            removable=tuple(dict.fromkeys(asked.remove)),
            replaceable=self._narrow(asked.specs),
            reinstall=tuple(kept),
            channels=self._channels() if "torch" in wish.changed and self.side.by_conda else (),
            offline=wish.offline,
        )

    def _add_family(self, flavour: Flavour, found: FamilySet, changed: tuple[str, ...], asked: _Asked) -> None:
        """Add the specs of the family's set; a package that is installed in that build is reinstalled instead."""
        texts = channels.specs(flavour, found, changed)
        moves = any(conda_specs.name_of(text) == "pytorch" and not self._is_there(text) for text in texts)
        for text in texts:
            # beside another build of torch, a companion of the same version is another build too
            name = conda_specs.name_of(text)
            if not moves and name in _BRINGING and self._is_there(text):
                asked.again.append(name)
            else:
                asked.specs.append(text)
        if "torch" not in changed:
            return
        # cpuonly and pytorch-cuda exclude each other: with the old one in place the solver finds no solution
        for name in channels.against(found.variant):
            if self.owners.conda.package(name) is not None:
                asked.remove.append(name)
                if name in _OPPOSITE:
                    asked.specs.append(f"{_OPPOSITE[name]}={found.versions['torch']}")

    def _is_there(self, text: str) -> bool:
        """Whether an installed package matches a spec."""
        installed = self.owners.conda.package(conda_specs.name_of(text))
        return installed is not None and channels.answers(text, installed)

    def _without(self, wish: DistributionChanges, handled: set[str], again: list[str]) -> list[str]:
        """Conda packages of distributions that are removed and not replaced."""
        gone = (self.owners.package(name) for name in wish.gone if name not in handled and self.is_condas(name))
        return [item.name for item in gone if item is not None and item.name not in again]

    def _narrow(self, specs: Iterable[str]) -> tuple[str, ...]:
        """Installed packages that must change with the requested ones: bound by exact versions, or part of torch."""
        conda = self.owners.conda
        named = [conda_specs.name_of(text) for text in specs]
        found = dict.fromkeys(siblings(conda, (name for name in named if conda.package(name) is not None)))
        if "pytorch" in named:
            found |= dict.fromkeys(
                item.name for item in conda.packages if item.name in family_packages() or channels.is_library(item.name)
            )
        return tuple(found)

    def _channels(self) -> tuple[str, ...]:
        """Channels of the family: that of the installed torch, and that of its libraries on the same server."""
        torch = self.owners.package("torch")
        if torch is None or self.flavour is None or not torch.channel or not self.flavour.channels:
            return ()
        # the installed package's URL names the mirror that this machine can reach
        base, _, last = torch.channel.rstrip("/").rpartition("/")
        if last != self.flavour.channel:
            return (torch.channel,)
        return tuple(f"{base}/{name}" if base else name for name in self.flavour.channels)


_BRINGING = frozenset({"pytorch", "torchvision", "torchaudio"})
"""Packages of the family that contain distributions, rather than choose a build."""
_OPPOSITE = {"pytorch-cpu": "pytorch-gpu", "pytorch-gpu": "pytorch-cpu"}


_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")


def _names(requires: Iterable[str]) -> set[str]:
    """Normalised names of requirements, without those of extras."""
    # a pattern is enough for a name, and it also reads requirements that `packaging` refuses
    found = (_NAME.match(text) for text in requires if "extra ==" not in text)
    return {canonicalize_name(match[0]) for match in found if match is not None}


def widened(request: CondaRequest, side: Side) -> CondaRequest | None:
    """Return a request in which conda may change any package except Python; None where it may already."""
    conda = Owners(side.environment).conda
    every = tuple(item.name for item in conda.packages if item.name not in NEVER and item.name not in request.remove)
    if not request.specs or set(every) <= set(request.replaceable):
        return None
    return CondaRequest(
        specs=request.specs,
        remove=request.remove,
        removable=request.removable,
        replaceable=every,
        reinstall=request.reinstall,
        channels=request.channels,
        offline=request.offline,
    )


def pinned(steps: Iterable[Step], divider: Divider) -> tuple[Step, ...]:
    """Return the steps with constraints on conda's distributions as match specs."""
    return tuple(_pinned(step, divider) if isinstance(step, Pin) else step for step in steps)


def _pinned(step: Pin, divider: Divider) -> Pin:
    asked = [(text, Requirement(text)) for text in step.constraints]
    condas = [item for _, item in asked if divider.is_condas(canonicalize_name(item.name))]
    specs = (match_specs.spec(divider.package(canonicalize_name(item.name)), item) for item in condas)
    return Pin(constraints=tuple(text for text, item in asked if item not in condas), conda=tuple(specs))
