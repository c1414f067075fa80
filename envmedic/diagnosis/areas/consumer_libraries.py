"""Facts on the consumers of NVIDIA's libraries other than torch."""

from __future__ import annotations

from envmedic.analysis.consumer_faults import consumer_faults, kinds
from envmedic.diagnosis.derived import Derived
from envmedic.model.facts import Facts


def derive(facts: Facts) -> Derived:
    """The facts of ``consumers.*``; those on the driver and the GPUs only where these are known."""
    environment = facts.environment
    if environment is None:
        return {}
    found = consumer_faults(environment, facts.host)
    derived: Derived = {
        "consumers.names": tuple(item.name for _, item in kinds(environment)),
        "consumers.lacking": tuple(item.text for item in found.lacking),
        "consumers.lacking-for-gpu": tuple(item.text for item in found.lacking_for_gpu),
        "consumers.nowhere": tuple(
            dict.fromkeys(item.library.soname for item in (*found.lacking, *found.lacking_for_gpu))
        ),
        "consumers.wrong": tuple(item.unmet().sentence() for item in found.wrong),
        "consumers.parts": tuple(item.unmet().sentence() for item in found.parts),
        "consumers.twice": tuple(" and ".join(group) for group in found.twice),
        "consumers.cpu-builds": found.cpu_builds,
        "consumers.shadowed": found.shadowed,
    }
    if facts.host.driver_version is not None:
        derived["consumers.driver-too-old"] = found.old_driver
    if facts.host.visible_gpus():
        derived["consumers.without-gpu-code"] = found.without_code
    return derived
