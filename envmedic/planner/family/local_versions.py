"""Requirements with a local version label, such as ``torch==2.4.1+cu118``, and the index that has such a build."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from envmedic.compat import versions
from envmedic.compat.torch_family import family
from envmedic.errors import NoSolution
from envmedic.model.answers.family import FamilyQuery, FamilySet
from envmedic.model.facts import Environment, Host

LABELLED = frozenset({"torch", "torchvision", "torchaudio"})
"""Members of the family whose builds have local labels."""


@dataclass(frozen=True)
class LocalVersionPins:
    """Requirements for the installer, with the index that they need."""

    pins: tuple[str, ...]
    variant: str | None = None
    """The CUDA variant of the labels; None without labels."""
    needs_variant_index: bool = False


def resolve_labels(pins: Iterable[str], environment: Environment, host: Host) -> LocalVersionPins:
    """Return `pins` without the labels of builds that the default index carries under their plain version.

    Raises `NoSolution` for two labels, since one environment has one variant of torch.
    """
    asked = tuple(pins)
    # the default index carries its builds without labels, so `torch==2.4.1+cu121` finds nothing there
    labels = {pin: label for pin in asked if (label := _label(Requirement(pin)))}
    variants = tuple(dict.fromkeys(labels.values()))
    if not variants:
        return LocalVersionPins(asked)
    if len(variants) > 1:
        raise NoSolution(
            f"Builds of several CUDA variants are asked for: {', '.join(labels)}",
            cause="one environment has one CUDA variant of torch",
            hint="Keep the torch family in one variant",
        )
    members = {str(canonicalize_name(Requirement(pin).name)): _exact(Requirement(pin)) or "" for pin in labels}
    if not _on_default_index(members, variants[0], environment, host):
        return LocalVersionPins(asked, variants[0], needs_variant_index=True)
    return LocalVersionPins(tuple(_plain(pin) if pin in labels else pin for pin in asked), variants[0])


def _label(requirement: Requirement) -> str | None:
    """The CUDA variant that an exact requirement on a member of the family names."""
    if canonicalize_name(requirement.name) not in LABELLED:
        return None
    label = versions.local(_exact(requirement) or "")
    return label if label is not None and versions.official_label(label) else None


def _exact(requirement: Requirement) -> str | None:
    exact = [item.version for item in requirement.specifier if item.operator == "=="]
    return exact[0] if len(exact) == 1 else None


def _plain(pin: str) -> str:
    name, _, version = pin.partition("==")
    # only the label goes; a marker stays
    label, semicolon, marker = version.partition(";")
    return f"{name}=={versions.public(label.strip())}{semicolon and ' ;'}{marker}"


def _on_default_index(members: Mapping[str, str], variant: str, environment: Environment, host: Host) -> bool:
    torch = environment.distribution("torch")
    chosen = {"torch": torch.version} if torch is not None else {}
    chosen |= members
    if "torch" not in chosen:
        return False
    found = FamilySet(
        variant=variant,
        versions={name: versions.public(version) for name, version in chosen.items()},
        policy="keep-torch",
    )
    query = FamilyQuery(
        python=environment.interpreter.version or "unknown",
        free_threaded=environment.interpreter.free_threaded,
        system=host.system,
        machine=host.machine,
    )
    return family.default_index_serves(found, members, query)
