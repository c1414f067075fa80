"""The same environment on another platform, solved by py-rattler: what was asked for, at the versions installed here."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from envmedic.conda_meta import specs
from envmedic.errors import NoSolution
from envmedic.installers.conda.configuration import configuration
from envmedic.installers.conda.solve.solving import Solver
from envmedic.model.conda import CondaArtifact, CondaEnvironment, CondaPackage, CondaRequest
from envmedic.model.events import Emit, Notice
from envmedic.model.facts import Environment, Host


def solve(environment: Environment, host: Host, emit: Emit, *, offline: bool = False) -> tuple[CondaArtifact, ...]:
    """The packages for `host`, each with its hashes.

    All versions are those installed here, where that can be; else those of what was asked for, and it is told. Raises
    NoSolution, NetworkError, InstallerError or InputError.
    """
    conda = environment.conda or CondaEnvironment()
    found = configuration.read(Path(os.path.realpath(environment.prefix)), conda.packages)
    request = CondaRequest(specs=tuple(f"{item.name} =={item.version}" for item in roots(conda)), offline=offline)
    same = tuple(f"{item.name} =={item.version}" for item in conda.packages)
    for pins in (same, ()):
        empty = CondaEnvironment(pinned=(*conda.pinned, *pins))
        there = msgspec.structs.replace(environment, conda=empty)
        try:
            return Solver(there, host, found, emit, None, "rattler").change(request).install
        except NoSolution:
            if not pins:
                raise
            text = f"{host.source}: not every version that is installed here is there; dependencies may differ"
            emit(Notice(code="other-versions", message=text, level="warning"))
    raise AssertionError


def roots(conda: CondaEnvironment) -> tuple[CondaPackage, ...]:
    """What was asked for, by history and records; where they tell nothing, what no other package needs. And Python."""
    asked = {_name(spec) for spec in conda.requested} | {item.name for item in conda.packages if item.requested}
    needed = {_name(spec) for item in conda.packages for spec in item.depends}
    chosen = asked or {item.name for item in conda.packages} - needed
    return tuple(item for item in conda.packages if item.name in {*chosen, "python"})


def _name(spec: str) -> str:
    try:
        return specs.name_of(spec)
    except ValueError:  # a form that only the solver knows; its name stands first
        return spec.split(maxsplit=1)[0] if spec.strip() else ""
