"""Facts on a run-time compiler (NVRTC) that LD_PRELOAD loads instead of torch's own."""

from __future__ import annotations

from envmedic.analysis.nvidia_wheels import preloaded_compilers
from envmedic.diagnosis.derived import Derived
from envmedic.model.facts import Facts


def derive(facts: Facts) -> Derived:
    """The compilers among the entries of LD_PRELOAD."""
    if facts.environment is None:
        return {}
    hiding = preloaded_compilers(facts, facts.environment)
    return {"nvidia.nvrtc-preloaded": tuple(f"{entry} comes before {own}" for entry, own in hiding.items() if own)}
