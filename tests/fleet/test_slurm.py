"""A small real fleet by real Slurm: watched, planned, repaired with a node killed in the middle, gone on, drained, undone."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fleet import real
from tests.fleet.test_ansible import engine_line, good, outcomes

LAYER = real.ROOT / "build" / "fleet-slurm"
"""Where `make fleet-slurm` installs Debian's packages of Slurm."""
pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not os.path.lexists(LAYER / "usr" / "sbin" / "slurmctld"),
    reason="Slurm is not installed: `make fleet-slurm` does that, as root on Debian",
)
NODES, DIED, OTHER = 5, "n3", "n4"


class Cluster:
    """A running cluster and its fleet."""

    def __init__(self, fleet: real.RealFleet) -> None:
        self.fleet = fleet
        self.log = (fleet.room / "cluster.log").open("wb")
        script = str(Path(__file__).with_name("cluster.sh"))
        argv = ["unshare", "-mpf", "--kill-child", "bash", script, str(LAYER), str(fleet.room), str(len(fleet.nodes))]
        self.process = subprocess.Popen(argv, stdout=self.log, stderr=self.log, stdin=subprocess.DEVNULL)
        deadline = time.monotonic() + real.LIMIT_S
        while not (fleet.room / "up").exists():
            assert self.process.poll() is None, (fleet.room / "cluster.log").read_text()
            assert time.monotonic() < deadline, "the cluster does not come up"
            time.sleep(0.2)
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        self.inside = ["nsenter", "--target", children.split()[0], "--mount", "--pid", "--root", "--wd=/"]

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        """Run a line in a shell of the login node."""
        line = f"cd {shlex.quote(str(self.fleet.room))} && {command}"
        return self.fleet.run(shlex.join([*self.inside, "sh", "-c", line]))

    def wait(self) -> None:
        """Wait until no job is left."""
        deadline = time.monotonic() + real.LIMIT_S
        while good(self.run("squeue --noheader")).strip():
            assert time.monotonic() < deadline, self.run("squeue").stdout
            time.sleep(0.5)

    def until(self, command: str, wanted: Callable[[str], bool]) -> str:
        """Run a line again until it prints what is wanted."""
        deadline = time.monotonic() + real.LIMIT_S
        while not wanted(found := good(self.run(command))):
            assert time.monotonic() < deadline, found
            time.sleep(0.5)
        return found

    def power_off(self, node: str) -> None:
        """Kill a node with all that runs on it, its job's script before what that would drain the node for."""
        marks = (f"SLURMD_NODENAME={node}\0".encode(), self.fleet.mark(node))
        daemon = f"slurmd\0-N\0{node}\0".encode()
        for place in sorted(Path("/proc").glob("[0-9]*"), key=lambda place: int(place.name)):
            with contextlib.suppress(OSError):
                variables = (place / "environ").read_bytes()
                if any(mark in variables for mark in marks) or (place / "cmdline").read_bytes() == daemon:
                    os.kill(int(place.name), signal.SIGKILL)
        good(self.run(f"scontrol update nodename={node} state=down reason=died"))

    def end(self) -> None:
        """Kill it."""
        self.process.kill()
        self.process.wait()
        self.log.close()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    flags = real.unshare_flags()
    if flags is None:
        pytest.skip("no private mount namespaces here")
    fleet = real.build(tmp_path_factory.mktemp("slurm"), NODES, flags)
    own = fleet.room / "own.sh"
    own.write_text(f'#!/bin/sh\nexec {fleet.node} "$SLURMD_NODENAME" {shlex.join(real.ENVMEDIC)} "$@"\n')
    own.chmod(0o755)
    found = Cluster(fleet)
    yield found
    found.end()


def where(fleet: real.RealFleet) -> tuple[str, ...]:
    """Options that name the nodes, the environment, and what starts envmedic there."""
    return ("--on", f"slurm:n[1-{NODES}]", "-p", str(fleet.case.prefix), "--envmedic", str(fleet.room / "own.sh"))


def test_slurm_drains_what_a_kept_verdict_finds_broken_and_gets_it_back(cluster: Cluster) -> None:
    fleet, facts, watched = cluster.fleet, cluster.fleet.room / "watched-facts", cluster.fleet.room / "watched"
    facts.mkdir()
    good(cluster.run(engine_line(fleet, "survey", str(facts), *where(fleet))))
    how = ("--log", str(real.LOG), "--no-gpu", "-o", str(watched))
    good(fleet.envmedic("fleet", "plan", str(facts), *where(fleet), *how))
    good(cluster.run("scontrol update nodename=n4 state=drain reason=fan"))
    job = good(cluster.run("sbatch --parsable --nodelist=n5 --output=/dev/null --wrap 'sleep 3600'")).strip()
    cluster.until("squeue --noheader --format=%T", lambda out: "RUNNING" in out)
    good(cluster.run("cp watched/health.sh health.part && mv health.part health.sh"))
    reasons = "sinfo --noheader --Node --format='%N %T %E'"
    try:
        found = cluster.until(reasons, lambda out: out.count("drained envmedic health: ") == 3)
        # a node where a job runs is not looked at, and one that somebody else drained keeps their reason
        assert "n4 drained fan" in found
        assert "n5 allocated none" in found
        good(cluster.run(f"scancel {job}"))
        cluster.until(reasons, lambda out: "n5 drained envmedic health: not passed" in out)

        repair = ("apply", "-p", str(fleet.case.prefix), "--log", str(real.LOG), "--no-gpu", "--yes", "--quiet")
        good(fleet.as_node("n1", *real.ENVMEDIC, *repair))
        good(cluster.run("rm /var/cache/envmedic/health-*/n1"))
        found = cluster.until(reasons, lambda out: "n1 idle" in out)
        assert found.count("drained envmedic health: ") == 3
        ask = "SLURMD_NODENAME={} ./health.sh"
        assert good(cluster.run(ask.format("n1"))) == ""
        broken = cluster.run(ask.format("n2"))
        assert (broken.returncode, broken.stdout[:10]) == (1, "envmedic: ")
    finally:
        (fleet.room / "health.sh").unlink()
    good(fleet.as_node("n1", *real.ENVMEDIC, "undo", "-p", str(fleet.case.prefix), "--yes", "--quiet"))
    good(cluster.run("scontrol update nodename=n[2-5] state=resume"))


def test_a_cluster_is_repaired_and_goes_on_after_a_death_and_is_undone(cluster: Cluster) -> None:
    fleet = cluster.fleet
    (fleet.room / "facts").mkdir()
    good(cluster.run(engine_line(fleet, "survey", str(fleet.room / "facts"), *where(fleet))))
    how = ("--log", str(real.LOG), "--no-gpu", "--online", "--drain", "-o", str(fleet.place))
    good(cluster.run(engine_line(fleet, "plan", str(fleet.room / "facts"), *where(fleet), *how)))

    # it has another content than the class when its turn comes
    stray = fleet.room / "nodes" / OTHER / "env" / "stray"
    stray.write_text("mine")
    good(cluster.run(engine_line(fleet, "rollout", str(fleet.place), "--batches", "1,2,100%", "--max-fail", "50%")))
    fleet.wait_for_repair(DIED)
    cluster.power_off(DIED)
    cluster.wait()
    found = outcomes(fleet)
    assert found == {"n1": "repaired", "n2": "repaired", "n3": "unknown", "n4": "other-class", "n5": "unknown"}
    assert "envmedic: exit 8" in good(cluster.run("sinfo --noheader -R"))

    stray.unlink()
    good(cluster.run(f"slurmd -N {DIED}"))
    line = engine_line(fleet, "rollout", str(fleet.place), "--retry")
    good(cluster.run(line))
    cluster.wait()
    assert set(outcomes(fleet).values()) == {"repaired"}, cluster.run("sinfo; tail logs/*").stdout
    assert all(fleet.works(node) for node in fleet.nodes)
    assert "envmedic" not in good(cluster.run("sinfo --noheader -R"))

    good(cluster.run(engine_line(fleet, "undo", str(fleet.place))))
    cluster.wait()
    assert set(outcomes(fleet).values()) == {"undone"}
    assert not any(fleet.works(node) for node in fleet.nodes)
