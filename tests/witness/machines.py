"""Machines that share one environment: each has processes, mounts, a host name and a home of its own, all one tree."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.envs.nms_cuda import case
from tests.fleet.real import ENVMEDIC, LIMIT_S, LOG, RealFleet, host

_MACHINE = 'mount -t proc proc /proc && hostname $0 && { BEFORE"$@"; exit $?; }'
"""The shell stays the first process: what it starts before is no child of envmedic."""


def flags() -> list[str] | None:
    """How `unshare` makes a machine here; None where it cannot."""
    own = ["-m", "-p", "-u", "--fork", "--kill-child=KILL", *([] if os.geteuid() == 0 else ["-r"])]
    words = ["unshare", *own, "sh", "-c", _MACHINE.replace("BEFORE", ""), "n1", "true"]
    return own if subprocess.run(words, capture_output=True, check=False).returncode == 0 else None


@dataclass
class Ended:
    """A command that has ended."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """What it printed."""
        found: dict[str, Any] = json.loads(self.out)
        return found

    def told(self) -> str:
        """Everything, for the message of a test that fails."""
        return f"exit {self.code}\n{self.out[-3000:]}\n{self.err[-3000:]}"


@dataclass
class Running:
    """A command that runs as a machine."""

    process: subprocess.Popen[str]
    out: Path
    err: Path

    def ended(self, limit_s: float = LIMIT_S) -> Ended:
        """Wait for its end."""
        code = self.process.wait(limit_s)
        return Ended(code, self.out.read_text(), self.err.read_text())

    def killed(self) -> None:
        """Kill the machine: its first process, and with that all others."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@dataclass
class Site:
    """A shared directory with a broken environment, and the machines that use it."""

    room: Path
    built: case.Case
    variables: Mapping[str, str]
    disk: Path
    """The shared directory on the disk of its server."""
    mounts: Mapping[str, Path] = field(default_factory=dict)
    """Where each machine has it mounted that sees it through a file system of its own; machines see it at one path."""
    running: list[Running] = field(default_factory=list)

    @classmethod
    def build(cls, room: Path, shared: Path) -> Site:
        """Build the environment in `shared`; machines have their homes in `room`."""
        built = case.build(shared)
        variables = {**built.index_variables(), "CUDA_VISIBLE_DEVICES": "", "LC_ALL": "C.UTF-8"}
        return cls(room, built, variables, shared)

    @property
    def prefix(self) -> Path:
        """The environment."""
        return self.built.prefix

    @property
    def tree(self) -> Path:
        """The environment on the disk."""
        return self.disk / self.prefix.name

    @property
    def store(self) -> Path:
        """Where envmedic keeps transactions, on the disk."""
        return self.disk / ".envmedic"

    def start(self, machine: str, *words: str, under: str = "") -> Running:
        """Start a command as a machine; `under` is a line of shell that runs there first."""
        home = self.room / "homes" / machine
        home.mkdir(parents=True, exist_ok=True)
        own = {"HOME": str(home), "XDG_CACHE_HOME": str(home / ".cache"), "PYTHONDONTWRITEBYTECODE": "1"}
        number = len(self.running)
        out, err = self.room / f"{number}-{machine}.out", self.room / f"{number}-{machine}.err"
        own_mount = self.mounts.get(machine)
        bound = f"mount --bind {own_mount} {self.prefix.parent} && " if own_mount is not None else ""
        line = _MACHINE.replace("BEFORE", bound + under)
        made = flags()
        assert made is not None
        with out.open("w") as stdout, err.open("w") as stderr:
            process = subprocess.Popen(
                ["unshare", *made, "sh", "-c", line, machine, *words],
                env={"PATH": os.environ["PATH"], **self.variables, **own},
                cwd=self.room, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, text=True, start_new_session=True,
            )  # fmt: skip
        self.running.append(Running(process, out, err))
        return self.running[-1]

    def witness(self, machine: str, *options: str, limit_s: int = 300, under: str = "") -> Running:
        """Start a witness."""
        words = ("fleet", "witness", "-p", str(self.prefix), "--no-gpu", "--json", "--limit", str(limit_s), *options)
        return self.start(machine, *ENVMEDIC, *words, under=under)

    def repair(self, machine: str, *options: str, under: str = "") -> Running:
        """Start the repair."""
        words = ("apply", "-p", str(self.prefix), "--log", str(LOG), "--yes", "--no-gpu", "--json", *options)
        return self.start(machine, *ENVMEDIC, *words, under=under)

    def works(self) -> bool:
        """Whether the user's program works."""
        done = self.start("n1", str(self.built.python), "-B", str(self.built.program)).ended()
        return "kept boxes: [0, 2]" in done.out

    def journals(self) -> dict[str, str]:
        """The state of each transaction."""
        files = sorted(self.store.glob("2*/journal.json"))
        return {path.parent.name: json.loads(path.read_bytes())["state"] for path in files}

    @property
    def transaction(self) -> Path:
        """The directory of the newest transaction."""
        return max(self.store.glob("2*"))

    def until(self, what: Callable[[], bool]) -> None:
        """Wait until something is so."""
        deadline = time.monotonic() + LIMIT_S
        while not what():
            assert time.monotonic() < deadline, "it does not come"
            time.sleep(0.02)

    def until_asked(self, kind: str) -> None:
        """Wait until the repair asks that."""

        def asks() -> bool:
            found = max(self.store.glob("2*/witness/question.json"), default=None)
            return found is not None and json.loads(found.read_bytes())["kind"] == kind

        self.until(asks)

    def until_asked_for_proof(self, machine: str) -> None:
        """Let a machine tell that no program is in the way, and end it before it is asked for a proof."""
        first = self.witness(machine)
        self.until(lambda: bool(list(self.store.glob(f"2*/witness/1-{machine}.json"))))
        first.killed()
        self.until_asked("proof")

    def close(self) -> None:
        """Kill what still runs."""
        for one in self.running:
            if one.process.poll() is None:
                one.killed()


_NODE = """\
#!/bin/sh
# MACHINE COMMAND…: as that machine
node=$1
shift
exec unshare {flags} sh -c 'mount -t proc proc /proc && hostname $0 && {{ {before} "$@"; exit $?; }}' $node \\
    env HOME={room}/homes/$node XDG_CACHE_HOME={room}/homes/$node/.cache ENVMEDIC_TEST_NODE={room}/$node {variables} "$@"
"""


def fleet_of(room: Path, nodes: Sequence[str]) -> RealFleet:
    """A fleet of machines that see one tree at its true path; each begins with ``before-MACHINE``, a file of shell."""
    built = case.build(room / "site")
    found = RealFleet(room, built, tuple(nodes))
    variables = {**built.index_variables(), "CUDA_VISIBLE_DEVICES": "", "PYTHONDONTWRITEBYTECODE": "1"}
    own = shlex.join(f"{name}={value}" for name, value in variables.items())
    before = f"if [ -e {room}/before-$0 ]; then . {room}/before-$0; fi;"
    found.node.write_text(_NODE.format(flags=shlex.join(flags() or []), room=room, variables=own, before=before))
    found.node.chmod(0o755)
    found.hosts.write_text("".join(f"{host(node)}\n" for node in found.nodes))
    for node in found.nodes:
        (room / "homes" / node).mkdir(parents=True)
    return found
