"""Which names of a distribution an import check is about."""

from __future__ import annotations

from collections.abc import Iterable

from envmedic.compat import guides
from envmedic.model.facts import Distribution, Environment

FAMILY = ("torch", "torchvision", "torchaudio")
"""Of the torch family, those that are imported by their own name."""
_OWN_CHECKS = frozenset({"torchvision", "torchaudio", "triton"})
"""Of the extension packages, those that have checks of their own."""


def every(distributions: Iterable[Distribution]) -> tuple[str, ...]:
    """Every name that an import can prove, sorted, for comparing before and after."""
    return tuple(sorted({name for item in distributions for name in importable(item)}))


def importable(distribution: Distribution) -> tuple[str, ...]:
    """Its top-level names, or those inside a namespace that it shares with others."""
    good = [
        name
        for name in distribution.import_names
        if all(part.isidentifier() for part in name.split(".")) and not name.startswith("__")
    ]
    top = [name for name in good if "." not in name]
    return tuple(top or good)


def main(distributions: Iterable[Distribution]) -> tuple[str, ...]:
    """The names by which the distributions are known, sorted, for judging an environment as it is.

    Beside its own name a wheel may bring tests, examples and private modules that nobody imports.
    """
    return tuple(sorted({name for item in distributions for name in _main(item)}))


def _main(distribution: Distribution) -> tuple[str, ...]:
    names = importable(distribution)
    own = tuple(name for name in names if name.lower().replace("_", "-") == distribution.name)
    public = tuple(name for name in names if not name.startswith("_"))
    return own or public or names


def extensions(distributions: Iterable[Distribution]) -> tuple[str, ...]:
    """Names of the distributions whose compiled operators the data know, sorted."""
    known = guides.guides()
    return tuple(sorted({item.name for item in distributions if item.name in known and item.name not in _OWN_CHECKS}))


def family(environment: Environment) -> tuple[str, ...]:
    """Names of the torch family that are installed."""
    return tuple(name for name in FAMILY if environment.distribution(name))
