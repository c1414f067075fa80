"""Use case ``plan --fetch``: download of everything that a plan installs."""

from __future__ import annotations

from pathlib import Path

from envmedic.api.context.observation import stage
from envmedic.api.context.settings import Settings
from envmedic.api.context.wiring import conda_of, installer_of
from envmedic.model.conda import CondaChange
from envmedic.model.plan import Install, Plan


def fetch(settings: Settings, made: Plan) -> None:
    """Fetch and verify every wheel and conda package of a plan; its environment does not change.

    Afterwards the plan can be applied without a network, on any machine with the same cache. Raises NetworkError or
    IntegrityError.
    """
    artifacts = [artifact for step in made.steps if isinstance(step, Install) for artifact in step.artifacts]
    changes = [step for step in made.steps if isinstance(step, CondaChange) and step.install]
    prefix = Path(made.real_prefix)
    with stage(settings.stream, "fetch"):
        for change in changes:
            conda_of(settings, prefix).fetch(change, offline=settings.offline, emit=settings.stream.emit)
        if artifacts:
            installer_of(settings, prefix).fetch(artifacts, offline=settings.offline, emit=settings.stream.emit)
