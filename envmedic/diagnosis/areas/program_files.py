"""Facts on programs that cannot be started, and on an environment that was moved."""

from __future__ import annotations

from envmedic.analysis import unstartable_programs
from envmedic.diagnosis.derived import Derived
from envmedic.model.facts import Facts


def derive(facts: Facts) -> Derived:
    """Facts of `model.vocabulary.kinds_files` on programs; none where no file was examined."""
    environment = facts.environment
    if environment is None or environment.files is None:
        return {}
    former = unstartable_programs.moved(environment)
    broken = tuple(unstartable_programs.broken(environment))
    path_files = tuple(unstartable_programs.dead_path_files(environment))
    return {
        "env.python-replacement": environment.interpreter.replacement,
        "files.moved-from": former.names if former is not None else None,
        "files.naming-it": tuple(item.path for item in unstartable_programs.moved_along(environment)),
        "programs.not-executable": tuple(item.path for item in unstartable_programs.not_executable(environment)),
        "programs.broken": tuple(item.path for item in broken),
        "path-files.dead": tuple(item.path for item in path_files),
        "path-files.reasons": tuple(f"{item.path} {item.detail}" for item in path_files),
        "programs.reasons": tuple(f"{item.path} {item.detail}" for item in broken),
    }
