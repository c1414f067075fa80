"""Carry one small plan out on an environment, and print where the seconds went, as JSON.

    python -m tests.bench.one_apply PREFIX WHEEL

The real engine, probe and uv install one tiny wheel and check that it imports. Run in a process of its
own, so that what a first use costs (imports above all) is counted.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from envmedic.api.context.settings import Settings
from envmedic.api.context.target import EnvironmentTarget
from envmedic.api.context.wiring import check_runner, engine_ports
from envmedic.engine.transaction.transaction import apply
from envmedic.model.checks import Check
from envmedic.model.events import EventStream
from envmedic.model.facts import Host
from envmedic.model.findings import Finding
from envmedic.model.plan import Artifact, Install, Plan
from envmedic.model.ports import ApplyOptions
from envmedic.tree import fingerprint

OTHERS = ("fetch", "reproduce", "steps", "verify", "smoke")
"""Stages whose time is that of the installer and of the checks."""


def main(arguments: Sequence[str]) -> int:
    """Apply, and print ``{"own": seconds, "stages": {name: seconds}, "state": …}``."""
    prefix, wheel = map(Path, arguments)
    stream = EventStream([])
    settings = Settings(stream=stream, offline=True)
    target = EnvironmentTarget.of(prefix)
    plan = make_plan(prefix, wheel)
    started = time.perf_counter()
    record = apply(
        plan,
        options=ApplyOptions(no_gpu=True, offline=True, clone="link"),
        ports=engine_ports(settings, target, confirm=lambda _plan: True),
        checks=check_runner(settings, target, no_gpu=True),
        stream=stream,
    )
    seconds = time.perf_counter() - started
    own = seconds - sum(record.seconds.get(name, 0.0) for name in OTHERS)
    error = record.failure.summary if record.failure else None
    print(json.dumps({"own": own, "stages": record.seconds, "state": record.state, "error": error}))  # noqa: T201
    return 0 if record.state == "done" else 1


def make_plan(prefix: Path, wheel: Path) -> Plan:
    """Install `wheel`, which lies on this machine, and see that it imports."""
    name, version = wheel.name.split("-")[:2]
    artifact = Artifact(
        name=name,
        version=version,
        filename=wheel.name,
        url=wheel.as_uri(),
        sha256=hashlib.sha256(wheel.read_bytes()).hexdigest(),
        local_path=str(wheel),
    )
    return Plan(
        id="bench",
        envmedic="0",
        created="2026-01-01T00:00:00Z",
        prefix=str(prefix),
        real_prefix=os.path.realpath(prefix),
        environment_digest=fingerprint.digest(prefix),
        playbook="bench",
        fault="torchvision-ops",
        finding=Finding(
            fault="torchvision-ops",
            playbook="bench",
            signature=None,
            confidence=1.0,
            confirmed=True,
            summary="nothing is broken",
            fix_kind="reinstall-matching-wheel",
        ),
        host=Host(),
        steps=(Install(artifacts=(artifact,)),),
        checks=(Check(name="import", role="playbook", arguments=(name,)),),
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
