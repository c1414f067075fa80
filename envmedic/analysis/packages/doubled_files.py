"""Distributions that are installed twice or over each other, and the copy to keep."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from envmedic.analysis.consumer_faults import right_build
from envmedic.analysis.numpy_generation import modules_for_one
from envmedic.analysis.packages.dependents import Dependants, parse
from envmedic.compat.versions import allows
from envmedic.model.facts import Distribution, Environment, FileConflict

RESTORABLE = frozenset({"index", "archive", "unknown"})
"""Kinds of origin whose version an index can provide again."""


class Duplicate(msgspec.Struct, frozen=True):
    """A distribution with more than one metadata directory."""

    copies: tuple[Distribution, ...]
    right: Distribution
    """The copy to keep."""
    why: str
    """The reason, as the end of a sentence."""


class Overwriting(msgspec.Struct, frozen=True):
    """Two distributions with files of the same paths, one of which can go."""

    conflict: FileConflict
    right: Distribution
    """The one to keep."""


def duplicates(environment: Environment, dependants: Dependants) -> tuple[Duplicate, ...]:
    """Return the distributions that are installed more than once."""
    found = []
    for name in environment.duplicates:
        copies = [item for item in environment.distributions if item.name == name and not item.outside_prefix]
        found.append(Duplicate(tuple(copies), *_right_copy(environment, copies, dependants)))
    return tuple(found)


def overwritings(environment: Environment, dependants: Dependants) -> tuple[Overwriting, ...]:
    """Return the pairs that overwrote each other's files, where one can be removed and both can be restored."""
    found = []
    by_name = {item.name: item for item in own(environment)}
    for conflict in environment.conflicts:
        pair = [by_name[name] for name in conflict.distributions if name in by_name and not conflict.conda]
        # both, since purging one deletes the shared paths, and the other must be installed again
        if len(pair) == len(conflict.distributions) and all(map(restorable, pair)):
            right = _kept(conflict, pair, dependants, environment)
            if right is not None and not _laid_over(conflict, right, dependants):
                found.append(Overwriting(conflict, right))
    return tuple(found)


def own(environment: Environment) -> list[Distribution]:
    """Distributions inside the prefix with one copy; duplicates have facts of their own."""
    doubled = set(environment.duplicates)
    return [item for item in environment.distributions if not item.outside_prefix and item.name not in doubled]


def restorable(item: Distribution) -> bool:
    """Whether an index can give that version again."""
    return item.owner != "conda" and item.origin.kind in RESTORABLE and parse(item.version) is not None


def pin(item: Distribution) -> str:
    """Return the requirement on the installed version."""
    return f"{item.name}=={item.version}"


def _right_copy(
    environment: Environment, copies: Sequence[Distribution], dependants: Dependants
) -> tuple[Distribution, str]:
    """The copy to keep: the one that others require, then the one whose files are on disk, then the newest."""
    agreement = {item: _agreement(environment, item) for item in copies}
    accepted = {item: dependants.accepting(item.name, item.version) for item in copies}
    # `restorable` comes before the files: a copy that no index has cannot be installed again after the purge of both
    chosen = max(copies, key=lambda item: (accepted[item], restorable(item), agreement[item], _order(item.version)))
    if len(set(accepted.values())) > 1:
        return chosen, "is what other distributions ask for"
    if len(set(agreement.values())) > 1:
        return chosen, "is the one whose files are there"
    return chosen, "is the newest"


def _order(version: str) -> tuple[bool, object]:
    parsed = parse(version)
    return (parsed is not None, parsed)


def _agreement(environment: Environment, item: Distribution) -> float:
    """Part of its recorded files on disk, 0 to 1."""
    # torch/version.py states the version outright; most paths of two releases are the same
    if item.name == "torch" and environment.torch is not None and environment.torch.version.startswith(item.public):
        return 1.0
    report = next((it for it in environment.files or () if it.metadata_path == item.metadata_path), None)
    return report.matching / report.recorded if report is not None and report.recorded else 0.0


def _laid_over(conflict: FileConflict, right: Distribution, dependants: Dependants) -> bool:
    """Whether a build for the GPU has all its files over those of the one for the CPU, which others require by name."""
    place = conflict.distributions.index(right.name)
    other = conflict.distributions[1 - place]
    whole = conflict.content_of[place] == len(conflict.paths)
    return (
        whole
        and bool(right_build(dependants.environment, dependants.host, conflict.distributions))
        and stays(other, right, dependants)
    )


def stays(name: str, right: Distribution, dependants: Dependants) -> bool:
    """Whether the other one of a pair keeps its metadata, since others require it by its name."""
    return bool(dependants.of(name, apart_from={name, right.name}))


def _kept(
    conflict: FileConflict, pair: Sequence[Distribution], dependants: Dependants, environment: Environment
) -> Distribution | None:
    """The one of two to keep; None where others require both. A build for the GPU stays, whoever asks for the other.

    Where nothing requires either, it is the one that fits Python and NumPy, then the newer, then the one with more of
    its content on disk, which was installed last.
    """
    names = {item.name for item in pair}
    build = right_build(environment, dependants.host, [item.name for item in pair])
    if build is not None:
        return next(item for item in pair if item.name == build)
    required = [item for item in pair if dependants.of(item.name, apart_from=names)]
    if len(required) == len(pair):
        return None
    if required:
        return required[0]
    content = dict(zip(pair, conflict.content_of, strict=True))
    return max(pair, key=lambda item: (fits(item, dependants, environment), _order(item.version), content[item]))


def fits(item: Distribution, dependants: Dependants, environment: Environment) -> bool:
    """Whether an installed distribution fits the environment's Python and NumPy."""
    python, asked = environment.interpreter.version, item.requires_python
    if python is not None and asked and not allows(asked, python):
        return False
    return dependants.met(item.name, "numpy") and f"{item.name} {item.version}" not in (
        modules_for_one(environment) or {}
    )
