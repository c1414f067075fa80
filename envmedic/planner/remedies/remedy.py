"""The result of a remedy, and the situation from which it is decided."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from envmedic.errors import NoSolution
from envmedic.model.base import Model
from envmedic.model.facts import Distribution, Environment, Facts, Host
from envmedic.model.plan import Step
from envmedic.planner.moves.conflict_graph import Conflicts
from envmedic.planner.moves.hitting_sets import HittingSets

MOVED_TOGETHER = frozenset({"torch", "torchvision", "torchaudio", "triton", "numpy"})
"""Distributions that move with all that is built against them, by playbooks of their own."""
THE_TORCH_ENVIRONMENT = "Name the environment that has torch with -p PREFIX, or install torch first"
"""The next step where torch itself is missing."""


class Remedy(Model, frozen=True, kw_only=True):
    """The changes of a remedy; empty where it finds nothing wrong."""

    purge: tuple[str, ...] = ()
    """Distributions to remove, every copy of them."""
    leftovers: bool = False
    """Whether to remove the leftovers of these distributions too."""
    install: tuple[str, ...] = ()
    """Requirements to install."""
    variables: dict[str, str] = {}
    """Variables that the environment keeps."""
    steps: tuple[Step, ...] = ()
    """Steps that repair files in place."""
    why: str
    """Why this is to change, or why nothing is, as a clause."""
    conflicts: Conflicts | None = None
    """The conflicts that `install` ends by the least change; a resolver decides between this way and others."""

    @property
    def empty(self) -> bool:
        """Whether nothing is to change."""
        return not (self.purge or self.install or self.variables or self.steps)


def moving(conflicts: Conflicts, *, why: str, otherwise: str) -> Remedy:
    """Return the remedy that ends `conflicts`; `why` says why something moves, `otherwise` why nothing does."""
    least = next(iter(HittingSets(conflicts)), None)
    return Remedy(why=otherwise) if least is None else Remedy(install=least.pins, why=why, conflicts=conflicts)


@dataclass(frozen=True)
class Situation:
    """The input of a remedy."""

    facts: Facts
    environment: Environment
    """The environment of `facts`."""
    groups: Mapping[str, str] = field(default_factory=dict)
    """Values from the error text, by the names of the matched groups."""
    importing: str | None = None
    """Module whose import the text shows failing; None where it shows none."""

    @property
    def host(self) -> Host:
        """The host of `facts`."""
        return self.facts.host

    def torch(self, without: str) -> Distribution:
        """Return the installed torch. Raises `NoSolution` where there is none; `without` says what that leaves open."""
        found = self.environment.distribution("torch")
        if found is None:
            raise NoSolution(
                f"No torch is installed here, so {without}",
                cause=f"{self.environment.prefix} has no distribution torch",
                hint=THE_TORCH_ENVIRONMENT,
            )
        return found

    def variable(self, name: str) -> str:
        """Return the value of a variable that programs of the environment see, empty where it is not set."""
        found = self.facts.variables().get(name)
        return found.value if found is not None else ""
