"""Moves of the torch family to other releases without a fault. Pure."""

from __future__ import annotations

import hashlib

import msgspec

from envmedic.compat import versions
from envmedic.model.answers.family import FamilySet
from envmedic.model.facts import Environment
from envmedic.model.playbook import LoadedPlaybook, Playbook, Policy, TorchFamilyStep
from envmedic.planner.proposal_case import ProposalCase

UNCHANGED = "it changes nothing"
"""The reason against a set that is installed already."""
_OF_TORCHVISION = ("torchvision-dispatch", "torchvision-nms", "torchvision-roi-align")
_OF_TORCHAUDIO = ("torchaudio-lfilter",)
MEANINGS: dict[Policy, str] = {
    "keep-torch": "torch stays, and what belongs to it comes in the releases that fit it",
    "keep-release": "the release of torch stays, and comes for a newer CUDA",
    "keep-cuda-variant": "the newest torch that there is for the same CUDA",
    "default-index": "the newest torch that the default index has with all that belongs to it, for one CUDA",
    "newest": "the newest torch that works here, for whichever CUDA",
}
"""Descriptions of the policies: the kept and the moved parts."""


def playbook(policy: Policy, environment: Environment) -> LoadedPlaybook:
    """Return the steps and checks of a move by `policy`, in the form of a playbook.

    Its checks must pass afterwards, whatever they said before.
    """
    checks = ["import"]
    if environment.distribution("torchvision") is not None:
        checks += _OF_TORCHVISION
    if environment.distribution("torchaudio") is not None:
        checks += _OF_TORCHAUDIO
    # a playbook in memory lets a move use the same planning, verification and record as a repair
    made = Playbook(
        id="move",
        title=MEANINGS[policy],
        explain=MEANINGS[policy],
        fix_kind="other",
        steps=(TorchFamilyStep(policy=(policy,)),),
        checks=tuple(checks),
    )
    # plans name the digest of their playbook; one that is not a file has its canonical JSON digested
    digest = hashlib.sha256(msgspec.json.encode(made, order="deterministic")).hexdigest()
    return LoadedPlaybook(playbook=made, path="", sha256=digest, origin="shipped")


def is_there(case: ProposalCase, found: FamilySet) -> bool:
    """Return whether a set is installed already, under any owner, so that it is no target of a move."""
    # the observed environment, not the state with settled owners: a set under any owner is installed
    environment = case.before or case.environment
    here, build = {item.name: item.public for item in environment.distributions}, environment.torch
    same = build is not None and (found.policy == "keep-torch" or build.variant == found.variant)
    return same and all(here.get(name) == item for name, item in found.versions.items())


def unseen_driver(case: ProposalCase, found: FamilySet | None) -> tuple[str, ...]:
    """Return a note where no driver was found to check the CUDA version of a move against."""
    cuda = versions.variant_cuda(found.variant) if found is not None else None
    if cuda is None or case.host.driver_version is not None:
        return ()
    told = f"no NVIDIA driver was found here: whether one supports CUDA {cuda} is not known"
    return (f"{told}; plan for another machine with --host FILE",)
