"""Proposals of the planner, before anything is resolved."""

from __future__ import annotations

from envmedic.errors import NoSolution
from envmedic.model.answers.family import FamilySet
from envmedic.model.base import Model
from envmedic.model.conda import CondaRequest
from envmedic.model.plan import PlanAlternative, Purge, Step
from envmedic.model.ports import ResolveRequest
from envmedic.planner.moves.conflict_graph import Conflicts

IN_THE_WAY = ", with what is in its way"
"""End of the title of a proposal that may change other packages too."""


class Proposal(Model, frozen=True, kw_only=True):
    """One way to carry out a playbook."""

    title: str
    family: FamilySet | None = None
    """The coherent set aimed at; None where the playbook does not ask for one."""
    changed: tuple[str, ...] = ()
    """Members of the family to install."""
    purge: Purge
    request: ResolveRequest | None = None
    """The request to resolve to wheels; None where no wheel is installed."""
    conda: CondaRequest | None = None
    """The request to conda's solver; None where no conda package changes."""
    after: tuple[Step, ...] = ()
    """Steps that follow the installation, in the playbook's order."""
    cost: str = ""
    """The change beyond the fault: the reason against it while a smaller proposal exists."""
    notes: tuple[str, ...] = ()
    cuda_build: bool | None = None
    """Whether the resulting torch is a CUDA build, where neither the set nor the files on disk tell."""


class Proposals(Model, frozen=True, kw_only=True):
    """Proposals, best first, and what was rejected with its reason."""

    proposals: tuple[Proposal, ...]
    rejected: tuple[PlanAlternative, ...] = ()
    conflicts: Conflicts | None = None
    """The conflicts of requirements that the proposals end in one of several ways; None where there is one way."""

    def best(self) -> Proposal:
        """Return the first proposal. Raises `NoSolution`, with every reason, when there is none."""
        if self.proposals:
            return self.proposals[0]
        raise NoSolution(
            "No coherent set of distributions exists for this host and environment",
            cause=self.rejected[0].why_not if self.rejected else None,
            hint="Change what the reasons name: the driver, the Python version, or what is bound to the installed torch",
            details=tuple(f"{item.title}: {item.why_not}" for item in self.rejected),
        )
