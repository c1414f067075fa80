"""Conflicts of requirements between installed distributions, as a graph. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import cached_property

import msgspec
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from envmedic.analysis.packages.doubled_files import RESTORABLE
from envmedic.compat.installed_requirements import Demand
from envmedic.compat.versions import allows, too_new
from envmedic.model.facts import Environment

_OF_TORCH = frozenset({"torch", "torchvision", "torchaudio", "triton", "pytorch-triton"})
"""Distributions that playbooks of their own move together."""


class Conflicts(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """Violated requirements, with all others that a repair must respect.

    Each violated requirement is an edge between the distribution that states it and the one that it is on: one of the
    two has to move.
    """

    violated: tuple[Demand, ...]
    every: tuple[Demand, ...]
    """All requirements, met or not, the violated ones among them."""
    fixed: frozenset[str]
    """Distributions that must stay as they are."""
    wanted: tuple[str, ...] = ()
    """Requirements from outside the environment, such as those of the error text, that hold in every solution."""
    unrelated: tuple[tuple[str, str], ...] = ()
    """Name and version of what neither states nor meets a requirement: another release of its neighbours may need it."""
    by_conda: frozenset[str] = frozenset()
    """Distributions that conda brought, whose own solver decides what moves with them."""
    newer: frozenset[str] = frozenset()
    """Distributions of which only newer releases may accept what they refuse.

    Those whose metadata do not state the violated requirement, and those for which what they ask for is too new: that an
    older release states no limit says only that nobody knew of one then.
    """
    unseen: bool = False
    """Whether what the text says of a module stays true where they end: who asked for it asks no more."""
    instead: tuple[Conflicts, ...] = ()
    """What may be at odds otherwise, likeliest first: each is tried where nothing before it proved itself."""

    @property
    def title(self) -> str:
        """The name of the way to which nothing but the text leads, empty where there is none."""
        return ", ".join(self.wanted) if not self.violated else ""

    @cached_property
    def installed(self) -> dict[str, str]:
        """The installed version of each distribution."""
        found = dict(self.unrelated) | {item.name: item.found for item in self.every if item.found is not None}
        return found | {item.by.name: item.by.version for item in self.every}

    @cached_property
    def _content(self) -> dict[str, set[str]]:
        """The distributions that accept the installed version of each required one."""
        content: dict[str, set[str]] = {item.name: set() for item in self.every if item.by.name != item.name}
        complaining = {(item.by.name, item.name) for item in self.every if not item.met}
        for by, name in {(item.by.name, item.name) for item in self.every} - complaining:
            if by != name:
                content[name].add(by)
        return content

    def weight(self, moved: Collection[str]) -> int:
        """Return how many dependents of the `moved` distributions stay, and accept the installed versions.

        A distribution that nothing requires was installed for its own sake: the user's programs count as one dependent.
        """
        known = [name for name in moved if name in self.installed]
        return sum(len(self._content[name].difference(moved)) if name in self._content else 1 for name in known)

    def required(self, name: str) -> bool:
        """Whether another installed distribution requires this one."""
        return name in self._content

    @cached_property
    def asked(self) -> dict[str, str]:
        """The specifiers of `wanted` by the names of the distributions."""
        parsed = map(Requirement, self.wanted)
        return {str(canonicalize_name(item.name)): str(item.specifier) for item in parsed}

    def accepts(self, specifier: str, name: str) -> bool:
        """Whether the installed version of a distribution is in a range; False for one that is not installed."""
        version = self.installed.get(name)
        return version is not None and (not specifier or allows(specifier, version))


def conflicts(
    environment: Environment,
    violated: Iterable[Demand],
    every: Sequence[Demand],
    *,
    wanted: tuple[str, ...] = (),
    unstated: Iterable[Demand] = (),
    fixed: frozenset[str] = frozenset(),
) -> Conflicts:
    """Return the conflicts of an environment; `unstated` are requirements that no metadata states.

    torch's family moves by rules of its own, and what no index can give again cannot be replaced: both are fixed, as
    are the distributions in `fixed`.
    """
    bound = {
        item.name
        for item in environment.distributions
        if item.outside_prefix or (item.owner != "conda" and item.origin.kind not in RESTORABLE)
    }
    names = {item.name for item in environment.distributions}
    bound |= {name for name in names if name in _OF_TORCH or name.startswith("nvidia-")}
    found = tuple(dict.fromkeys(violated))
    related = {name for item in (*every, *found) for name in (item.name, item.by.name)}
    return Conflicts(
        violated=found,
        every=tuple(dict.fromkeys((*every, *found))),
        fixed=frozenset(bound | fixed),
        wanted=wanted,
        unrelated=tuple((item.name, item.version) for item in environment.distributions if item.name not in related),
        by_conda=frozenset(item.name for item in environment.distributions if item.owner == "conda"),
        newer=frozenset(item.by.name for item in unstated if not item.met)
        | {item.by.name for item in found if item.found is not None and too_new(item.specifier, item.found)},
    )
