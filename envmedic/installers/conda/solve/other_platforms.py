"""Solution of an environment for another platform by py-rattler: its requested packages, at the installed versions."""

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

    All versions are the installed ones if possible; else only those of requested packages, with a notice. Raises
    NoSolution, NetworkError, InstallerError or InputError.
    """
    conda = environment.conda or CondaEnvironment()
    found = configuration.read(Path(os.path.realpath(environment.prefix)), conda.packages)
    # Versions without builds: build strings differ by platform.
    request = CondaRequest(
        specs=tuple(f"{item.name} =={item.version}" for item in requested_roots(conda)), offline=offline
    )
    same = tuple(f"{item.name} =={item.version}" for item in conda.packages)
    for pins in (same, ()):
        # Nothing is installed on the other platform: pins, not records, hold versions, and apply only to packages that
        # the solution needs.
        empty = CondaEnvironment(pinned=(*conda.pinned, *pins))
        there = msgspec.structs.replace(environment, conda=empty)
        try:
            return Solver(there, host, found, emit, None, "rattler").change(request).install
        except NoSolution:
            if not pins:
                raise
            text = f"{host.source}: not every version that is installed here is there; dependencies may differ"
            emit(Notice(code="other-versions", message=text, level="warning"))
    # The last turn returns or raises: this only tells mypy so.
    raise AssertionError


def requested_roots(conda: CondaEnvironment) -> tuple[CondaPackage, ...]:
    """Requested packages by history and records, or else those that no other package needs; and Python."""
    asked = {_name(spec) for spec in conda.requested} | {item.name for item in conda.packages if item.requested}
    needed = {_name(spec) for item in conda.packages for spec in item.depends}
    chosen = asked or {item.name for item in conda.packages} - needed
    return tuple(item for item in conda.packages if item.name in {*chosen, "python"})


def _name(spec: str) -> str:
    try:
        return specs.name_of(spec)
    except ValueError:  # a form that only the solver reads; the name comes first
        return spec.split(maxsplit=1)[0] if spec.strip() else ""
