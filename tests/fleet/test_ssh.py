"""A small real fleet by Ansible over real SSH: each machine has an sshd of its own, on an address of its own."""

from __future__ import annotations

import shlex
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fleet import real
from tests.fleet.test_ansible import engine_line, good, outcomes
from tests.real.manifest import changed, manifest

LAYER = real.ROOT / "build" / "fleet-sshd"
"""Where `make fleet-sshd` unpacks Debian's packages."""
SSHD = next((str(path) for path in (LAYER / "usr/sbin/sshd", Path("/usr/sbin/sshd")) if path.exists()), None)
LIBRARIES = ":".join(str(path.parent) for path in LAYER.rglob("libwrap.so.0"))
FLAGS = real.unshare_flags()
pytestmark = [
    pytest.mark.skipif(not real.ALL, reason="it takes minutes: `make fleet` runs it"),
    pytest.mark.skipif(real.ansible() is None, reason="ansible-core is not installed: `make fleet` does that"),
    pytest.mark.skipif(SSHD is None, reason="there is no sshd: `make fleet-sshd` unpacks Debian's"),
    pytest.mark.skipif(FLAGS != "-m", reason="sshd needs root, and private mount namespaces"),
]
NODES, DIED = 5, "n3"
_CONFIG = """\
Port {port}
ListenAddress {address}
HostKey {room}/host
AuthorizedKeysFile {room}/user.pub
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
Subsystem sftp internal-sftp
SetEnv {variables}
"""
_MACHINE = """\
mount --bind "$1/passwd" /etc/passwd && mount --bind "$1/shadow" /etc/shadow && mount -t tmpfs tmpfs /run && mkdir /run/sshd &&
    LD_LIBRARY_PATH="$4" exec "$2" -D -e -f "$3"
"""
"""In the namespaces of a machine: accounts without a password, and sshd."""


class Machines:
    """The machines of a fleet, each switched on or off."""

    def __init__(self, fleet: real.RealFleet) -> None:
        self.fleet = fleet
        self.on: dict[str, subprocess.Popen[bytes]] = {}
        room = fleet.room
        for name in ("host", "user"):
            words = ("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(room / name))
            subprocess.run(words, check=True)
        with socket.create_server(("127.0.0.2", 0)) as free:
            self.port = free.getsockname()[1]
        self.addresses = {node: f"127.0.0.{number}" for number, node in enumerate(fleet.nodes, start=2)}
        key = (room / "host.pub").read_text()
        (room / "known").write_text("".join(f"[{address}]:{self.port} {key}" for address in self.addresses.values()))
        (room / "passwd").write_text(f"root:x:0:0::{room}/homes:/bin/sh\nsshd:x:65534:65534::/:/bin/false\n")
        (room / "shadow").write_text("root:*:::::::\nsshd:*:::::::\n")
        options = f"-F none -o UserKnownHostsFile={room}/known -o ControlPersist=5s -o ControlMaster=auto"
        hosts = [
            f"{node} ansible_host={address} ansible_port={self.port} ansible_user=root ansible_connection=ssh"
            f" ansible_ssh_private_key_file={room}/user ansible_ssh_args='{options}' ansible_python_interpreter={real.PYTHON}"
            for node, address in self.addresses.items()
        ]
        fleet.hosts.write_text("\n".join(hosts) + "\n")

    def switch_on(self, node: str) -> None:
        """Start a machine, and wait until it answers."""
        room, config = self.fleet.room, self.fleet.room / f"{node}.conf"
        asked = self.fleet.as_node(node, "env", "-0").stdout.split("\0")
        kept = [
            item for item in asked if item.startswith(("HOME=", "XDG_", "UV_", "PIP_", "ENVMEDIC_", "CUDA_", "PYTHON"))
        ]
        variables = " ".join(f'"{item}"' for item in kept)
        config.write_text(_CONFIG.format(port=self.port, address=self.addresses[node], room=room, variables=variables))
        inside = ("sh", "-c", _MACHINE, "sh", str(room), str(SSHD), str(config), LIBRARIES)
        argv = ("unshare", "-mpf", "--mount-proc", "--kill-child", str(self.fleet.node), node, *inside)
        with (room / f"{node}.log").open("ab") as log:
            self.on[node] = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        deadline = time.monotonic() + real.LIMIT_S
        while True:
            assert self.on[node].poll() is None, (room / f"{node}.log").read_text()
            try:
                socket.create_connection((self.addresses[node], self.port)).close()
            except ConnectionRefusedError:
                assert time.monotonic() < deadline, f"the sshd of {node} does not answer"
                time.sleep(0.05)
            else:
                return

    def power_off(self, node: str) -> None:
        """Kill all of a machine at once, its sshd too."""
        self.on[node].kill()
        self.on[node].wait()


@pytest.fixture
def machines() -> Iterator[Machines]:
    assert FLAGS is not None
    # a short path: ssh keeps sockets below it
    with tempfile.TemporaryDirectory(prefix="fleet-ssh-") as room:
        found = Machines(real.build(Path(room), NODES, FLAGS))
        try:
            for node in found.fleet.nodes:
                found.switch_on(node)
            yield found
        finally:
            for node in found.on:
                found.power_off(node)


def test_a_fleet_over_ssh_is_surveyed_repaired_goes_on_after_a_death_and_is_undone(machines: Machines) -> None:
    fleet = machines.fleet
    (fleet.room / "nodes" / "n5" / "env" / "stray").write_text("mine")
    before = {node: manifest(fleet.room / "nodes" / node / "env") for node in fleet.nodes}
    facts = str(fleet.room / "facts")
    where = ("--on", f"ansible:{fleet.hosts}", "-p", str(fleet.case.prefix), "--envmedic", shlex.join(real.ENVMEDIC))
    good(fleet.run(engine_line(fleet, "survey", facts, *where)))
    assert "2 classes" in good(fleet.envmedic("fleet", "survey", facts))
    how = ("--log", str(real.LOG), "--no-gpu", "--online", "-o", str(fleet.place))
    good(fleet.run(engine_line(fleet, "plan", facts, *where, *how)))

    def power_cut() -> None:
        fleet.wait_for_repair(DIED)
        machines.power_off(DIED)

    killer = threading.Thread(target=power_cut)
    killer.start()
    said = good(
        fleet.run(engine_line(fleet, "rollout", str(fleet.place), "--canary", "1", "--batches", "2,100%")), code=2
    )
    killer.join()
    found = outcomes(fleet)
    assert found == {"n1": "repaired", "n2": "repaired", "n3": "unknown", "n4": "unknown", "n5": "repaired"}, said
    assert not changed(before["n4"], manifest(fleet.room / "nodes" / "n4" / "env"))

    # it is off still, which stops the rollout as a failure does
    good(fleet.run(engine_line(fleet, "rollout", str(fleet.place))), code=2)
    assert outcomes(fleet) == found
    machines.switch_on(DIED)
    done = good(fleet.run(engine_line(fleet, "rollout", str(fleet.place))))
    assert "[n1]" not in done, "a machine that was done was touched"
    assert set(outcomes(fleet).values()) == {"repaired"}
    assert all(fleet.works(node) for node in fleet.nodes)

    good(fleet.run(engine_line(fleet, "undo", str(fleet.place))))
    assert set(outcomes(fleet).values()) == {"undone"}
    assert all(not changed(before[node], manifest(fleet.room / "nodes" / node / "env")) for node in fleet.nodes)
