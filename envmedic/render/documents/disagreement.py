"""Who disagrees with whom: installed distributions that another torch than the installed one is for."""

from __future__ import annotations

from collections.abc import Iterator

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from envmedic.model.facts import Environment
from envmedic.render.text import Line, TextPart, joined, part, visible


def disagreement_lines(environment: Environment | None) -> list[Line]:
    """A picture for each: ``torch 2.5.1 ─✗─ torchvision 0.18.1, needs torch 2.3.1``. None where all agree."""
    torch = environment.distribution("torch") if environment is not None else None
    if environment is None or torch is None:
        return []
    return [
        joined(f"torch {torch.version} ", part("─✗─", "bad"), f" {name} {version}, ", TextPart(needs, "bold"))
        for name, version, needs in _refusing(environment, torch.version)
    ]


def _refusing(environment: Environment, torch: str) -> Iterator[tuple[str, str, str]]:
    """Name, version and wish of each distribution whose requirement on torch the installed one does not meet."""
    try:
        installed = Version(torch)
    except InvalidVersion:
        return
    for item in environment.distributions:
        for text in item.requires:
            wanted = _on_torch(text)
            if wanted is not None and not wanted.specifier.contains(installed, prereleases=True):
                only = str(wanted.specifier)
                plain = only.removeprefix("==") if only.startswith("==") and "," not in only else only
                yield item.name, item.version, visible(f"needs torch {plain}")


def _on_torch(text: str) -> Requirement | None:
    """A requirement on torch that holds everywhere; one with a marker may be about another machine."""
    if not text.lower().startswith("torch"):
        return None
    try:
        found = Requirement(text)
    except InvalidRequirement:
        return None
    return found if found.marker is None and canonicalize_name(found.name) == "torch" else None
