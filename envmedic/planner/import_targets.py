"""Import names of distributions, as the arguments of import checks."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping

from envmedic.compat import guides
from envmedic.compat.installed_requirements import Demand
from envmedic.model.facts import Distribution, Environment

FAMILY = ("torch", "torchvision", "torchaudio")
"""Members of the torch family whose import name is their own name."""
_OWN_CHECKS = frozenset({"torchvision", "torchaudio", "triton"})
"""Extension packages with checks of their own."""


def every(distributions: Iterable[Distribution]) -> tuple[str, ...]:
    """Return every importable name, sorted, for a comparison of before and after."""
    return tuple(sorted({name for item in distributions for name in importable(item)}))


def in_order(names: Iterable[str], distributions: Iterable[Distribution], asked: Iterable[Demand]) -> tuple[str, ...]:
    """Return `names` in the order in which their imports are best begun where some run side by side.

    Those of distributions that require most others, themselves or through others, come first: they take longest, and one
    that begins late is waited for alone. `asked` are the requirements of the environment. Equals stay in their order.
    """
    required: dict[str, set[str]] = {}
    for demand in asked:
        required.setdefault(demand.by.name, set()).add(demand.name)
    reach: dict[str, int] = {}
    for item in distributions:
        reached = _reached(item.name, required)
        for name in importable(item):
            reach[name] = max(reached, reach.get(name, 0))
    return tuple(sorted(names, key=lambda name: -reach.get(name, 0)))


def _reached(name: str, required: Mapping[str, Iterable[str]]) -> int:
    """Return how many distributions `name` needs, itself among them."""
    seen, left = {name}, deque([name])
    while left:
        new = set(required.get(left.popleft(), ())) - seen
        seen |= new
        left.extend(new)
    return len(seen)


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
