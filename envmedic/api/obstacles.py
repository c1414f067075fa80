"""What would keep a repair from beginning or from being proven here, told with diagnosis and plan."""

from __future__ import annotations

from pathlib import Path

import msgspec

from envmedic.engine.store.protection import refusals
from envmedic.linked_prefix import real_prefix
from envmedic.model.facts import Facts, Host
from envmedic.model.findings import Diagnosis, Obstacle


def in_diagnosis(diagnosis: Diagnosis) -> Diagnosis:
    """Return `diagnosis` with what is in the way of a repair; as it is where there is nothing to repair."""
    if diagnosis.prefix is None or diagnosis.facts is None or not any(item.playbook for item in diagnosis.findings):
        return diagnosis
    found = protections(Path(diagnosis.prefix))
    if _has_cuda_build(diagnosis.facts):
        found += without_gpu(diagnosis.facts.host)
    return msgspec.structs.replace(diagnosis, obstacles=found)


def protections(prefix: Path) -> tuple[Obstacle, ...]:
    """Return the reasons for which the environment is to stay as it is."""
    return tuple(
        Obstacle(
            kind="protected",
            text=f"{error.summary}: {error.cause}" if error.cause else error.summary,
            hint=error.hint or "",
        )
        for error in refusals(real_prefix(prefix))
    )


def _has_cuda_build(facts: Facts) -> bool:
    torch = facts.environment.torch if facts.environment is not None else None
    return torch is not None and (torch.variant or "").startswith("cu")


def without_gpu(host: Host) -> tuple[Obstacle, ...]:
    """Return what checks on a GPU lack on a host."""
    if any(gpu.visible for gpu in host.gpus):
        return ()
    return (
        Obstacle(
            kind="unproven",
            text="No GPU is visible here, so a repair cannot be proven on one",
            hint="Repair it where the GPU is, or accept a repair without that proof with --no-gpu",
        ),
    )
