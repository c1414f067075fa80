"""A small real fleet on one machine: each "machine" sees its own copy of a broken environment at the same path.

A machine is a private mount namespace with its own tree bound over the common path, and a home of its own.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.envs.nms_cuda import case

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ROOT / "build" / "fleet-tools"
"""Where `make fleet` installs ansible-core."""
LOG = ROOT / "tests" / "envs" / "nms_cuda" / "sample_operator_does_not_exist.log"
ALL = bool(os.environ.get("ENVMEDIC_TEST_FLEET"))
"""Whether as much as there is time for is asked for, as `make fleet` does."""
LIMIT_S = 900
PYTHON = os.path.realpath(sys.executable)
"""For machines: it starts faster than that of a virtual environment."""
_NODE = """\
#!/bin/sh
# MACHINE COMMAND…: as that machine
node=$1
shift
exec unshare {flags} sh -c 'mount --bind "$0" "$1" && shift && exec "$@"' {room}/nodes/$node {site} \\
    env HOME={room}/homes/$node XDG_CACHE_HOME={room}/homes/$node/.cache ENVMEDIC_TEST_NODE={room}/$node {variables} "$@"
"""


def ansible() -> str | None:
    """The directory of Ansible's programs; None where it is not installed."""
    own = TOOLS / "bin" / "ansible-playbook"
    found = str(own) if own.exists() else shutil.which("ansible-playbook")
    return found and str(Path(found).parent)


def unshare_flags() -> str | None:
    """How `unshare` makes a private mount namespace here; None where it cannot."""
    flags = "-m" if os.geteuid() == 0 else "-rm"
    done = subprocess.run(["unshare", flags, "true"], capture_output=True, check=False)
    return flags if done.returncode == 0 else None


@dataclass(frozen=True)
class RealFleet:
    """Machines with the same broken environment."""

    room: Path
    built: case.Case | None
    nodes: tuple[str, ...]

    @property
    def case(self) -> case.Case:
        """The environment as it is on every machine."""
        assert self.built is not None
        return self.built

    @property
    def node(self) -> Path:
        """The program that runs a command as a machine."""
        return self.room / "node.sh"

    @property
    def place(self) -> Path:
        """The directory of the repair."""
        return self.room / "repair"

    @property
    def hosts(self) -> Path:
        """Ansible's inventory."""
        return self.room / "hosts.ini"

    @property
    def on_node(self) -> str:
        """The words that start envmedic on a machine, as `--envmedic` takes them."""
        return shlex.join([str(self.node), "{{ inventory_hostname }}", *ENVMEDIC])

    def facts_words(self) -> str:
        """Arguments of the module that collects facts."""
        words = {"prefix": str(self.case.prefix), "results": str(self.room / "facts")}
        command = [str(self.node), "{{ inventory_hostname }}", *ENVMEDIC]
        return json.dumps({**words, "envmedic": command})

    def variables(self) -> dict[str, str]:
        """Of the controller: a home of its own, no settings of this machine, Ansible on its PATH."""
        home = self.room / "controller"
        home.mkdir(exist_ok=True)
        path = f"{ansible()}:{os.environ['PATH']}" if ansible() else os.environ["PATH"]
        own = {"HOME": str(home), "ANSIBLE_HOME": str(home / ".ansible"), "PATH": path, "LC_ALL": "C.UTF-8"}
        return {**own, "PYTHONDONTWRITEBYTECODE": "1", "CUDA_VISIBLE_DEVICES": "", "ANSIBLE_FORKS": "4"}

    def envmedic(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run envmedic on the controller."""
        return self.run(shlex.join([*ENVMEDIC, *words]))

    def run(
        self, command: str, *, variables: Mapping[str, str] | None = None, limit_s: float = LIMIT_S
    ) -> subprocess.CompletedProcess[str]:
        """Run a line that envmedic printed, as an admin does, in the controller's shell."""
        own = {**self.variables(), **(variables or {})}
        return subprocess.run(
            ["sh", "-c", command], cwd=self.room, env=own, capture_output=True, text=True, check=False, timeout=limit_s
        )

    def as_node(self, node: str, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command as a machine."""
        return self.run(shlex.join([str(self.node), node, *words]))

    def works(self, node: str) -> bool:
        """Whether the user's program works there."""
        done = self.as_node(node, str(self.case.python), str(self.case.program))
        return "kept boxes: [0, 2]" in done.stdout

    def mark(self, node: str) -> bytes:
        """What the variables of each process of a machine have; machines of another fleet have the same names."""
        return f"\0ENVMEDIC_TEST_NODE={self.room}/{node}\0".encode()

    def killed(self, node: str) -> None:
        """Kill every process of a machine, as a power cut does."""
        mark = self.mark(node)
        for place in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):  # it has ended, or is somebody else's
                if mark in (place / "environ").read_bytes():
                    os.kill(int(place.name), signal.SIGKILL)

    def wait_for_repair(self, node: str) -> None:
        """Wait until a repair is under way on a machine."""
        deadline = time.monotonic() + LIMIT_S
        while not list((self.room / "nodes" / node / ".envmedic").glob("2*")):
            assert time.monotonic() < deadline, f"no repair begins on {node}"
            time.sleep(0.02)

    def kill_in_repair(self, node: str) -> None:
        """Kill a machine as soon as a repair is under way on it."""
        self.wait_for_repair(node)
        self.killed(node)


def host(node: str) -> str:
    """A line of Ansible's inventory."""
    return f"{node} ansible_connection=local ansible_python_interpreter={PYTHON}"


ENVMEDIC = (sys.executable, "-m", "envmedic")


def collection() -> str:
    """The variable by which Ansible finds the collection."""
    return f"ANSIBLE_COLLECTIONS_PATH={shlex.quote(str(ROOT / 'envmedic'))}"


def build(room: Path, count: int, flags: str) -> RealFleet:
    """Build the environment once, and a copy of it for each machine."""
    site = room / "site"
    built = case.build(site)
    nodes = tuple(f"n{number}" for number in range(1, count + 1))
    for node in nodes:
        (room / "homes" / node).mkdir(parents=True)
        shutil.copytree(site, room / "nodes" / node, symlinks=True)
    variables = {**built.index_variables(), "CUDA_VISIBLE_DEVICES": ""}
    script = _NODE.format(
        flags=flags,
        room=shlex.quote(str(room)),
        site=shlex.quote(str(site)),
        variables=shlex.join(f"{name}={value}" for name, value in variables.items()),
    )
    fleet = RealFleet(room, built, nodes)
    fleet.node.write_text(script)
    fleet.node.chmod(0o755)
    fleet.hosts.write_text("".join(f"{host(node)}\n" for node in nodes))
    return fleet
