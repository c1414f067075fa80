"""Import names of distributions, as the arguments of import checks."""

from __future__ import annotations

from collections.abc import Iterable

from envmedic.compat import guides
from envmedic.model.facts import Distribution, Environment

FAMILY = ("torch", "torchvision", "torchaudio")
"""Members of the torch family whose import name is their own name."""
_OWN_CHECKS = frozenset({"torchvision", "torchaudio", "triton"})
"""Extension packages with checks of their own."""


def every(distributions: Iterable[Distribution]) -> tuple[str, ...]:
    """Return every importable name, sorted, for a comparison of before and after."""
    return tuple(sorted({name for item in distributions for name in importable(item)}))


def importable(distribution: Distribution) -> tuple[str, ...]:
    """Return the top-level names, or those inside a namespace that several distributions share."""
    # RECORDs also list files that no import statement can name, such as `foo-bar.py` or `__editable__` finders
    good = [
        name
        for name in distribution.import_names
        if all(part.isidentifier() for part in name.split(".")) and not name.startswith("__")
    ]
    top = [name for name in good if "." not in name]
    return tuple(top or good)


def main(distributions: Iterable[Distribution]) -> tuple[str, ...]:
    """Return the main import names, sorted, to judge an environment without a comparison.

    A wheel may also contain tests, examples and private modules, whose failing imports mean nothing.
    """
    return tuple(sorted({name for item in distributions for name in _main(item)}))


def _main(distribution: Distribution) -> tuple[str, ...]:
    names = importable(distribution)
    # distribution names are normalised (PEP 503), import names keep case and underscores
    own = tuple(name for name in names if name.lower().replace("_", "-") == distribution.name)
    public = tuple(name for name in names if not name.startswith("_"))
    return own or public or names


def extensions(distributions: Iterable[Distribution]) -> tuple[str, ...]:
    """Return the names of distributions whose compiled operators the data know, sorted."""
    known = guides.guides()
    return tuple(sorted({item.name for item in distributions if item.name in known and item.name not in _OWN_CHECKS}))


def family(environment: Environment) -> tuple[str, ...]:
    """Names of the torch family that are installed."""
    return tuple(name for name in FAMILY if environment.distribution(name))
