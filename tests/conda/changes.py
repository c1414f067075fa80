"""Changes of conda packages, solved and carried out in real transactions."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest

from envmedic.conda_meta import records as meta
from envmedic.engine.generations.generations import undo
from envmedic.engine.store.context import TransactionContext
from envmedic.engine.store.swap import Point, no_point
from envmedic.engine.transaction.transaction import apply
from envmedic.installers.conda.conda_installer import CondaSide
from envmedic.installers.uv import UvInstaller
from envmedic.model.checks import Check
from envmedic.model.conda import CondaChange, CondaEnvironment, CondaExecutor, CondaRequest
from envmedic.model.events import Event, EventData, EventStream, Notice
from envmedic.model.facts import Environment, Host, Interpreter
from envmedic.model.plan import Plan, Step
from envmedic.model.ports import ApplyOptions, EnginePorts
from envmedic.model.record import Record
from envmedic.probe.environment import observe_environment
from envmedic.probe.packages.distributions import states
from envmedic.tree import fingerprint
from tests.conda.room import Room
from tests.engine.world import finding, nobody, run_python_checks

TEST_HOST = Host(driver_cuda="12.2", driver_version="550.54.15", glibc="2.36", kernel="6.1.0-18-amd64", source="a test")


def enter(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process have the room's variables, and no others of conda's."""
    for name in [name for name in os.environ if name.startswith(("CONDA", "MAMBA", "RATTLER", "XDG_"))]:
        monkeypatch.delenv(name)
    for name, value in room.environment.items():
        monkeypatch.setenv(name, value)


@dataclass
class Case:
    """An environment whose conda packages change; the room was entered (`enter`)."""

    room: Room
    prefix: Path
    executor: CondaExecutor = "rattler"
    options: ApplyOptions = ApplyOptions()  # noqa: RUF009  # frozen
    driver_cuda: str = "12.2"
    events: list[EventData] = field(default_factory=list)

    @property
    def side(self) -> CondaSide:
        """What solves and carries out."""
        return CondaSide(self.prefix, executor=self.executor)

    @property
    def host(self) -> Host:
        """A machine with that driver."""
        return msgspec.structs.replace(TEST_HOST, driver_cuda=self.driver_cuda)

    def environment(self) -> Environment:
        """What the environment is now."""
        return observe_environment(self.prefix)

    def resolve(
        self,
        *specs: str,
        remove: tuple[str, ...] = (),
        removable: tuple[str, ...] = (),
        replaceable: tuple[str, ...] = (),
        reinstall: tuple[str, ...] = (),
        channels: tuple[str, ...] = (),
        offline: bool = False,
    ) -> CondaChange:
        """Solve."""
        request = CondaRequest(
            specs=specs, remove=remove, removable=removable, replaceable=replaceable, reinstall=reinstall,
            channels=channels, offline=offline,
        )  # fmt: skip
        return self.side.resolve(request, self.environment(), self.host, self.events.append)

    def apply(self, *steps: Step, check: str = "pass", point: Point = no_point) -> Record:
        """Carry steps out in a transaction that `check`, code that the environment's Python runs, must prove."""
        plan = Plan(
            id="plan",
            envmedic="0",
            created="2026-01-01T00:00:00Z",
            prefix=str(self.prefix),
            real_prefix=os.path.realpath(self.prefix),
            environment_digest=fingerprint.digest(self.prefix),
            playbook="nms-cuda",
            fault="torchvision-ops",
            finding=finding(),
            host=self.host,
            steps=steps,
            checks=(Check(name="works", role="playbook", arguments=(check,)),),
        )
        return apply(
            plan,
            options=self.options,
            ports=self._ports(),
            checks=run_python_checks,
            stream=EventStream([self._keep]),
            point=point,
        )

    def undo(self) -> Record:
        """Take the last change back."""
        return undo(
            TransactionContext.of(
                self.prefix, self.options, self._ports(), run_python_checks, EventStream([self._keep])
            )
        )

    def _ports(self) -> EnginePorts:
        return EnginePorts(
            installer=lambda: UvInstaller(prefix=self.prefix),
            distributions=states,
            processes=nobody,
            gpu_visible=lambda: (False, "no driver"),
            confirm=lambda _plan: True,
            conda=self.side,
        )

    def _keep(self, event: Event) -> None:
        self.events.append(event.data)

    def notices(self, code: str) -> list[str]:
        """What was told under that code."""
        return [item.message for item in self.events if isinstance(item, Notice) and item.code == code]


def installed(prefix: Path) -> dict[str, str]:
    """Name of each installed package → version and build."""
    return {item.name: f"{item.version} {item.build}" for item in meta.read(prefix).packages.values()}


def carried_out(record: Record) -> Record:
    """`record`, whose transaction must have done what it was asked to."""
    assert record.failure is None, msgspec.json.encode(record.failure).decode()
    return record


def content(prefix: Path) -> dict[str, str]:
    """Every file and link of an environment, with what it holds and its mode."""
    found = {}
    for path in sorted(prefix.rglob("*")):
        if path.is_symlink():
            found[str(path.relative_to(prefix))] = f"-> {path.readlink()}"
        elif path.is_file():
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            found[str(path.relative_to(prefix))] = f"{path.stat().st_mode:o} {digest}"
    return found


def environment_of(conda: CondaEnvironment) -> Environment:
    """Facts of an environment that is not on this machine, with these conda packages."""
    return Environment(
        prefix="/nowhere/env",
        real_prefix="/nowhere/env",
        kind="conda",
        interpreter=Interpreter(path="/nowhere/env/bin/python", starts=True),
        conda=conda,
        digest="",
    )
