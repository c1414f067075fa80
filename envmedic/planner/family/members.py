"""Members of the torch family that a set changes: only the wrong ones. Pure."""

from __future__ import annotations

from envmedic.compat import versions
from envmedic.model.answers.family import FamilySet
from envmedic.model.facts import Environment
from envmedic.planner.family.family_query import FAMILY


def cuda_major(variant: str | None) -> str | None:
    """Return the CUDA major of a variant, ``cpu`` for a CPU build, None when it cannot be told."""
    if variant is None or variant == "cpu":
        return variant
    cuda = versions.variant_cuda(variant)
    return cuda.partition(".")[0] if cuda else None


def changed(environment: Environment, found: FamilySet, purged: tuple[str, ...]) -> tuple[str, ...]:
    """Return the members of `found` that have to be installed, in the family's order.

    Where all members are in order by their metadata, those that the playbook purges are installed again: their
    files may be damaged.
    """
    torch_changes = _differs(environment, found, "torch")
    wrong = [
        name
        for name in FAMILY
        if name in found.versions
        and (_differs(environment, found, name) or _damaged(environment, name, torch_changes=torch_changes))
    ]
    again = [name for name in FAMILY if name in found.versions and name in purged and environment.distribution(name)]
    # torch last: its reinstallation downloads gigabytes, and a companion is the likelier cause
    return tuple(wrong or [name for name in again if name != "torch"] or again)


def _differs(environment: Environment, found: FamilySet, name: str) -> bool:
    """Whether a member is missing, doubled, of another version or of another build."""
    installed = environment.distribution(name)
    if installed is None or name in environment.duplicates or installed.public != found.versions[name]:
        return True
    if name == "triton":
        return False
    if name == "torch":
        return environment.torch is not None and environment.torch.variant not in {None, found.variant}
    # CUDA keeps binary compatibility within a major version, so companions of another minor version are right
    own, wanted = cuda_major(_companion_variant(environment, name)), cuda_major(found.variant)
    return own is not None and wanted is not None and own != wanted


def _companion_variant(environment: Environment, name: str) -> str | None:
    """Return the variant of an installed companion, by its build, then its label; None when unknown."""
    build, installed = environment.companion(name), environment.distribution(name)
    if build is not None and (build.variant or build.cuda):
        return build.variant or "cu" + "".join((build.cuda or "").split(".")[:2])
    if build is not None and name == "torchvision" and build.has_gpu_code is False:
        return "cpu"
    return installed.local if installed else None


def _damaged(environment: Environment, name: str, *, torch_changes: bool) -> bool:
    """Whether the libraries of a member cannot be read, or not be loaded with the unchanged torch."""
    # unresolved symbols were observed against the old torch, and prove nothing about a new one
    if torch_changes or name == "torch":
        return False
    libraries = [item for item in environment.libraries if item.distribution == name]
    return any(item.error or item.missing or item.unresolved_count for item in libraries)
