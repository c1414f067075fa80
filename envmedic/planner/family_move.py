"""Moving the torch family on where nothing is at fault. Pure."""

from __future__ import annotations

import hashlib

import msgspec

from envmedic.compat import versions
from envmedic.model.facts import Environment
from envmedic.model.family import FamilySet
from envmedic.model.playbook import LoadedPlaybook, Playbook, Policy, TorchFamilyStep
from envmedic.planner.proposal_case import ProposalCase

UNCHANGED = "it changes nothing"
"""Why a set is left out that is there already."""
_OF_TORCHVISION = ("torchvision-dispatch", "torchvision-nms", "torchvision-roi-align")
_OF_TORCHAUDIO = ("torchaudio-lfilter",)
MEANINGS: dict[Policy, str] = {
    "keep-torch": "torch stays, and what belongs to it comes in the releases that fit it",
    "keep-release": "the release of torch stays, and comes for a newer CUDA",
    "keep-cuda-variant": "the newest torch that there is for the same CUDA",
    "newest": "the newest torch that works here, for whichever CUDA",
}
"""What each policy keeps, and what moves."""


def playbook(policy: Policy, environment: Environment) -> LoadedPlaybook:
    """Return the steps and checks of a move by `policy`, in the form of a playbook.

    Its checks must pass afterwards, whatever they said before.
    """
    checks = ["import"]
    if environment.distribution("torchvision") is not None:
        checks += _OF_TORCHVISION
    if environment.distribution("torchaudio") is not None:
        checks += _OF_TORCHAUDIO
    made = Playbook(
        id="move",
        title=MEANINGS[policy],
        explain=MEANINGS[policy],
        fix_kind="other",
        steps=(TorchFamilyStep(policy=(policy,)),),
        checks=tuple(checks),
    )
    digest = hashlib.sha256(msgspec.json.encode(made, order="deterministic")).hexdigest()
    return LoadedPlaybook(playbook=made, path="", sha256=digest, origin="shipped")


def is_there(case: ProposalCase, found: FamilySet) -> bool:
    """Return whether a set is what is installed, whoever owns it: it is no place to move to."""
    environment = case.before or case.environment
    here, build = {item.name: item.public for item in environment.distributions}, environment.torch
    same = build is not None and (found.policy == "keep-torch" or build.variant == found.variant)
    return same and all(here.get(name) == item for name, item in found.versions.items())


def unseen_driver(case: ProposalCase, found: FamilySet | None) -> tuple[str, ...]:
    """Return what was not checked of a move: whether a driver that is not here supports its CUDA."""
    cuda = versions.variant_cuda(found.variant) if found is not None else None
    if cuda is None or case.host.driver_version is not None:
        return ()
    told = f"no NVIDIA driver was found here: whether one supports CUDA {cuda} is not known"
    return (f"{told}; plan for another machine with --host FILE",)
