"""The condition of this host's GPUs, for ``facts`` and ``verify --profile full``."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from envmedic.api.context.settings import Settings
from envmedic.diagnosis import gpu_warnings
from envmedic.model.answers.gpu_health import HostGpus
from envmedic.model.checks import Outcome
from envmedic.model.facts import Facts
from envmedic.probe.machine import gpu_health


def with_condition(settings: Settings, facts: Facts) -> Facts:
    """`facts` with the condition of the GPUs; as they are without a GPU, or of another host."""
    if settings.host_file is not None or not facts.host.gpus:
        return facts
    return msgspec.structs.replace(facts, gpu_health=condition())


def condition(outcomes: Iterable[Outcome] = ()) -> HostGpus:
    """The condition of the GPUs at this moment, with warnings, also of what `outcomes` have measured."""
    measured = [((item.device or "").partition(" ")[2], item.figures) for item in outcomes if item.figures]
    return gpu_warnings.judged(gpu_health.observe(), measured)
