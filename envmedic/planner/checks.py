"""The checks of a plan: the playbook's, the regressions and the informative ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from envmedic.compat import versions
from envmedic.model.checks import Check, named_check
from envmedic.model.facts import Environment
from envmedic.model.playbook import LoadedPlaybook
from envmedic.planner.proposal import Proposal

INFORMATIVE = ("matmul", "conv")
"""Run before and after; only a worse result blocks."""


@dataclass(frozen=True)
class Left:
    """What an environment holds after a plan."""

    cuda_build: bool
    names: tuple[str, ...]
    """Import names of every distribution that is there before and after."""
    family: tuple[str, ...]
    """Import names of the torch family."""


def left(environment: Environment, proposal: Proposal, removed: Iterable[str]) -> Left:
    """Return what is left when `removed` distributions are gone for good."""
    gone = set(removed)
    stays = [item for item in environment.distributions if item.name not in gone]
    names = {name for item in stays for name in _importable(item.import_names)}
    family = proposal.family
    members = [name for name in ("torch", "torchvision", "torchaudio") if family and name in family.versions]
    return Left(
        cuda_build=cuda_build(environment, proposal),
        names=tuple(sorted(names)),
        family=tuple(members or (name for name in ("torch",) if environment.distribution(name))),
    )


def _importable(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names that an import can prove: top-level ones, or those inside a shared namespace."""
    good = [
        name for name in names if all(part.isidentifier() for part in name.split(".")) and not name.startswith("__")
    ]
    top = [name for name in good if "." not in name]
    return tuple(top or good)


def cuda_build(environment: Environment, proposal: Proposal) -> bool:
    """Whether the torch that the plan leaves is a CUDA build."""
    if proposal.family is not None and "torch" in proposal.changed:
        return versions.variant_cuda(proposal.family.variant) is not None
    return environment.torch is not None and environment.torch.cuda is not None


def checks(loaded: LoadedPlaybook, state: Left) -> tuple[Check, ...]:
    """Return the checks in the order in which they are shown: playbook, regressions, informative."""
    own = loaded.playbook.checks
    required = (
        named_check(
            name,
            role="playbook",
            cuda_build=state.cuda_build,
            arguments=(state.family or state.names) if name == "import" else (),
        )
        for name in own
    )
    regressions = (
        named_check("import", role="regression", cuda_build=state.cuda_build, arguments=state.names),
        named_check("pip-check", role="regression", cuda_build=state.cuda_build),
    )
    informative = (named_check(name, cuda_build=state.cuda_build) for name in INFORMATIVE if name not in own)
    torch = bool(state.family)
    return (
        *required,
        *(item for item in regressions if item.name != "import" or state.names),
        *(informative if torch else ()),
    )
