"""What a repair would change, from tables and files alone: the first sentence on it, before anything is resolved. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from packaging.requirements import InvalidRequirement, Requirement

from envmedic.errors import EnvmedicError
from envmedic.model.facts import Environment, Facts
from envmedic.model.findings import Finding, RepairOutlook, VersionMove
from envmedic.model.playbook import FactValue, LoadedPlaybook
from envmedic.planner.proposal import Proposal
from envmedic.planner.proposals import proposals

SHOWN = 3
"""Distributions that are named."""


def outlook(
    facts: Facts, finding: Finding, loaded: LoadedPlaybook, values: Mapping[str, FactValue]
) -> RepairOutlook | None:
    """Return what the best way changes, None where no way is open or where only a resolution can tell."""
    if facts.environment is None:
        return None
    try:
        found = proposals(facts, finding, loaded, values=values)
    except EnvmedicError:  # a plan tells the reason, with what to do about it
        return None
    # which of several ways out of a conflict moves least is known once they are resolved
    if not found.proposals or found.conflicts is not None:
        return None
    best = found.proposals[0]
    moves = tuple(_moves(best, facts.environment))
    steps = "; ".join(step.describe() for step in best.after)
    if not moves and not steps:
        return None
    torch = facts.environment.distribution("torch")
    stays = torch is not None and all(item.name != "torch" for item in moves)
    replaced = (facts.environment.distribution(item.name) for item in moves)
    return RepairOutlook(
        title=best.title if moves else steps,
        moves=moves[:SHOWN],
        more=len(moves[SHOWN:]),
        torch=torch.version if torch is not None and stays else None,
        replaced_bytes=sum(item.size_bytes for item in replaced if item is not None),
    )


def _moves(proposal: Proposal, environment: Environment) -> Iterator[VersionMove]:
    wanted = _wanted(proposal)
    for name, version in wanted.items():
        installed = environment.distribution(name)
        yield VersionMove(name=name, before=installed.version if installed is not None else None, after=version)
    for name in proposal.purge.names:
        if name not in wanted:
            installed = environment.distribution(name)
            yield VersionMove(name=name, before=installed.version if installed is not None else None)


def _wanted(proposal: Proposal) -> dict[str, str]:
    """Versions or limits of what is installed, by name: of the family first, then of other requirements."""
    found: dict[str, str] = {}
    if proposal.family is not None:
        found = {name: proposal.family.versions[name] for name in proposal.changed}
    for text in proposal.request.pins if proposal.request is not None else ():
        try:
            wanted = Requirement(text)
        except InvalidRequirement:
            continue
        limits = str(wanted.specifier)
        found.setdefault(wanted.name, limits.removeprefix("==") if "," not in limits else limits)
    return {name: version or "another version" for name, version in found.items()}
