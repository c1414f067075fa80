"""The remedy for compiled modules that were built for another torch, or for another release of some library."""

from __future__ import annotations

from collections.abc import Iterator

from envmedic.analysis.compiled_modules import for_other_torch, names_other_torch, other_label, owner_of
from envmedic.errors import NoSolution
from envmedic.model.facts import Environment
from envmedic.planner.remedies.remedy import Remedy, Situation


def extension_undefined_symbol(situation: Situation) -> Remedy:
    """Install another build of the same version by its label, or the release whose metadata accepts this torch.

    Raises NoSolution where the name that the text misses is none of torch's.
    """
    found = tuple(_replacements(situation.environment))
    symbol = situation.groups.get("symbol", "")
    if not found and symbol and owner_of(symbol) != "torch":
        raise _nobody_defines(symbol, situation.environment)
    if not found:
        return Remedy(why="no module that misses something of torch says which torch it was built for")
    return Remedy(install=found, why="these modules name the torch that they were built for")


def _nobody_defines(symbol: str, environment: Environment) -> NoSolution:
    modules = (item for item in environment.extensions if symbol in {missed.symbol for missed in item.unresolved})
    module = next(modules, None)
    of = f" of {module.package or module.distribution}" if module and (module.package or module.distribution) else ""
    return NoSolution(
        f"Nothing here says which release of which library defines {symbol}",
        cause=f"{f'{module.path}{of}' if module else 'a compiled module'} looks for it, and it is none of torch's names",
        hint="Install the package of that module again, and in the same command the libraries that its documentation names",
    )


def _replacements(environment: Environment) -> Iterator[str]:
    for item in for_other_torch(environment):
        label = other_label(item, environment.torch)
        if label is not None:
            yield f"{item.name}=={item.public}+{label}"
        elif names_other_torch(item, environment.torch):
            yield item.name
