"""Moving the torch family on where nothing is at fault. Pure."""

from __future__ import annotations

import hashlib

import msgspec

from envmedic.model.facts import Environment
from envmedic.model.playbook import LoadedPlaybook, Playbook, Policy, TorchFamilyStep

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
