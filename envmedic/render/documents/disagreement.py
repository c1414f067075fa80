"""Who disagrees with whom: installed distributions that are made for another torch than the installed one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from envmedic.model.facts import Distribution, Environment
from envmedic.render.text import Cell, Line, TextPart, joined, part, table, visible

if TYPE_CHECKING:
    from packaging.requirements import Requirement


class Refusal(NamedTuple):
    """A distribution that requires another torch."""

    name: str
    version: str
    torch: str
    """The installed torch."""
    needs: str
    """The torch that it requires, as ``torch 2.3.1``."""


def refusals(environment: Environment | None) -> list[Refusal]:
    """Each distribution whose requirement on torch the installed one does not meet."""
    torch = environment.distribution("torch") if environment is not None else None
    return list(_refusing(environment, torch.version)) if environment is not None and torch is not None else []


def disagreement_lines(environment: Environment | None) -> list[Line]:
    """A picture for each: ``torch 2.5.1 ─✗─ torchvision 0.18.1, needs torch 2.3.1``. None where all agree."""
    return [
        joined(f"torch {item.torch} ", part("─✗─", "bad"), f" {item.name} {item.version}, ", part(_needs(item), "bold"))
        for item in refusals(environment)
    ]


def disagreement_table(environment: Environment, refused: Refusal) -> list[Line]:
    """A row for torch and one for the distribution that refuses it, with variants and who installed them."""
    torch, other = environment.distribution("torch"), environment.distribution(refused.name)
    rows: list[tuple[Cell, ...]] = [
        ("torch", refused.torch, _variant(environment, torch), _owner(torch)),
        (refused.name, refused.version, _variant(environment, other), TextPart(f"{visible(_needs(refused))}  ← wrong one", "bad")),
    ]  # fmt: skip
    return table(rows, indent="    ")


def _needs(refused: Refusal) -> str:
    return f"needs {refused.needs}"


def _variant(environment: Environment, item: Distribution | None) -> str:
    if item is None:
        return ""
    build = environment.torch if item.name == "torch" else environment.companion(item.name)
    return (build.variant if build is not None else None) or item.local or ""


def _owner(item: Distribution | None) -> str:
    return f"installed by {item.owner}" if item is not None else ""


def _refusing(environment: Environment, torch: str) -> Iterator[Refusal]:
    # loaded here: the first frame of the terminal UI has no environment yet
    from packaging.version import InvalidVersion, Version  # noqa: PLC0415

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
                yield Refusal(item.name, item.version, torch, f"torch {plain}")


def _on_torch(text: str) -> Requirement | None:
    """A requirement on torch that holds everywhere; one with a marker may be about another machine."""
    if not text.lower().startswith("torch"):
        return None
    from packaging.requirements import InvalidRequirement, Requirement  # noqa: PLC0415
    from packaging.utils import canonicalize_name  # noqa: PLC0415

    try:
        found = Requirement(text)
    except InvalidRequirement:
        return None
    return found if found.marker is None and canonicalize_name(found.name) == "torch" else None
