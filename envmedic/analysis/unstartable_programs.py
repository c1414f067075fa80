"""Programs that cannot be started, and what of it follows from a move of the environment."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from envmedic.model.facts import Defect, Environment


def moved(environment: Environment) -> Defect | None:
    """The defect of an environment that was moved from where it was made."""
    return next((item for item in environment.defects if item.kind == "moved" and item.names), None)


def moved_along(environment: Environment) -> tuple[Defect, ...]:
    """Scripts that are run by the former path of a moved environment, and sources that moved with it."""
    former = moved(environment)
    if former is None:
        return ()
    return tuple(
        item
        for item in environment.defects
        if (item.kind == "source-gone" and item.now) or (item.kind == "program" and _below(item, former))
    )


def broken(environment: Environment) -> Iterator[Defect]:
    """Scripts that are gone or run by a wrong Python, whatever else was moved."""
    along, dead = moved_along(environment), not environment.interpreter.starts
    for item in environment.defects:
        # where the environment's own Python does not start, that is the fault, and not the scripts that name it
        own = dead and item.names and PurePosixPath(item.names).is_relative_to(environment.prefix)
        if item.kind == "program" and item not in along and not own:
            yield item


def not_executable(environment: Environment) -> Iterator[Defect]:
    """Programs without permission to execute."""
    yield from (item for item in environment.defects if item.kind == "program-mode")


def dead_path_files(environment: Environment) -> Iterator[Defect]:
    """Path files that fail at every start, and that no distribution lists: one that does brings its modules back too."""
    yield from (item for item in environment.defects if item.kind == "path-file" and item.distribution is None)


def _below(script: Defect, former: Defect) -> bool:
    return PurePosixPath(script.names or "").is_relative_to(former.names or "/")
