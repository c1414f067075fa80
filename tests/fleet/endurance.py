"""``python -m tests.fleet.endurance``: what takes too long for `make fleet`; prints a line for each part.

`thousand`: a rollout over 1,000 hosts by real Ansible, each host a stub of seeded behaviour, beside the model of the engine.
`kills`: real nodes, killed at any moment of a repair, judged, repaired again and undone. `undo`: 64 real nodes taken back by Ansible.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from envmedic.model.answers.rollout import NodeSettings
from tests.fleet import real, stub
from tests.fleet.conftest import made_class_plan
from tests.fleet.paper import Machines, run_playbook, told, write_fleet
from tests.real.manifest import Entry, changed, manifest

NODES, SEED = 1000, 1
LANES = 2
"""Nodes that are killed at a time."""


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def need(condition: object, what: str) -> None:
    """Raise AssertionError with `what` is not so."""
    if not condition:
        raise AssertionError(what)


def thousand(room: Path, seed: int, nodes: int) -> None:
    """One fleet by the engine, and the same one by its model, until nothing is left or somebody has to look."""
    machines, folders, state = Machines(seed), {name: room / name for name in ("model", "engine")}, room / "state"
    state.mkdir()
    words = (real.PYTHON, "-S", stub.__file__, str(seed), "{{ inventory_hostname }}", str(state))
    hosts = room / "hosts.ini"
    hosts.write_text("".join(f"{real.host(f'n{number}')}\n" for number in range(1, nodes + 1)))
    for place in folders.values():
        write_fleet(
            place, made_class_plan(), nodes, settings=NodeSettings(command=words, limit_s=10), target=str(hosts)
        )
    fleet = real.RealFleet(room, None, ())
    options = ["--batches", "1%,10%,50%", "--max-fail", "5%"]
    stopped = ""
    ended: Counter[str] = Counter()
    for number in range(1, 40):
        lines = [_line(fleet, place, options) for place in folders.values()]
        need(lines[0]["left"] == lines[1]["left"], "the model and the engine have other machines left")
        if not lines[1]["command"]:
            if lines[1]["left"]["stopped"] == stopped:
                break  # nothing is left, or nobody can mend this one
            stopped, options = lines[1]["left"]["stopped"], ["--retry"]
            continue
        options = []
        started = time.monotonic()
        run_playbook(folders["model"], machines.apply, [])
        fleet.run(lines[1]["command"], limit_s=7200)
        engine = {path.name: tuple(json.loads(path.read_text())) for path in state.iterdir()}
        need(engine == machines.states, "the engine touched other machines than its model")
        need(told(folders["model"]) == told(folders["engine"]), "the answers differ")
        need(all(repairs <= 1 for _, repairs, _ in engine.values()), "a machine was repaired twice")
        ended = Counter(told(folders["engine"]).values())
        say(f"start {number}: {time.monotonic() - started:.0f} s; {len(engine)} machines touched so far; {dict(ended)}")
    say(f"{nodes} hosts, seed {seed}: engine and model agree in every start; {dict(ended)}")


def _line(fleet: real.RealFleet, place: Path, options: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(fleet.envmedic("fleet", "rollout", str(place), *options, "--json").stdout)
    return found


def ready(room: Path, count: int) -> real.RealFleet:
    """Real nodes with one broken environment, and a plan for their class."""
    flags = real.unshare_flags()
    need(flags is not None and real.ansible(), "private mount namespaces and Ansible are needed")
    fleet = real.build(room, count, str(flags))
    line = f"{real.collection()} ansible all -i {fleet.hosts} -m envmedic.fleet.facts -a '{fleet.facts_words()}'"
    good(fleet.run(line))
    where = ("--on", f"ansible:{fleet.hosts}", "-p", str(fleet.case.prefix), "--log", str(real.LOG))
    how = ("--envmedic", fleet.on_node, "--no-gpu", "--online", "-o", str(fleet.place))
    document = json.loads(good(fleet.envmedic("fleet", "plan", str(room / "facts"), *where, *how, "--json")))
    good(fleet.run(document["command"]))
    return fleet


def good(done: subprocess.CompletedProcess[str]) -> str:
    """What a command printed that ended well."""
    failed = [line[:600] for line in done.stdout.splitlines() if "FAILED!" in line][:5]
    what = "\n".join(failed) or done.stdout[-3000:]
    need(done.returncode == 0, f"exit {done.returncode}\n{what}\n{done.stderr[-3000:]}")
    return done.stdout


def taken_back(room: Path, count: int) -> None:
    """Repair every node, and time how long Ansible takes to undo all."""
    fleet = ready(room, count)
    before = {node: manifest(fleet.room / "nodes" / node / "env") for node in fleet.nodes}
    for verb in ("rollout", "undo"):
        words = ("--batches", "100%") if verb == "rollout" else ()
        command = json.loads(good(fleet.envmedic("fleet", verb, str(fleet.place), *words, "--json")))["command"]
        started = time.monotonic()
        good(fleet.run(command, limit_s=3600))
        say(f"{verb} of {count} nodes by Ansible: {time.monotonic() - started:.0f} s")
    same = all(not changed(before[node], manifest(fleet.room / "nodes" / node / "env")) for node in fleet.nodes)
    need(same, "an environment is not as it was")
    say(f"{count} environments are as they were, byte for byte")


def kills(room: Path, seed: int, count: int, limit_s: float) -> None:
    """Kill nodes in the middle of a repair, on two lanes, for as long as there is time."""
    fleet = ready(room, LANES)
    ended: Counter[str] = Counter()
    wrong: list[str] = []
    deadline = time.monotonic() + limit_s
    left = iter(range(count))
    guard = threading.Lock()

    def lane(node: str) -> None:
        chance = random.Random(f"kills {seed} {node}")
        env = fleet.room / "nodes" / node / "env"
        before = manifest(env)
        span = _timed(lambda: _applied(fleet, node))
        _back(fleet, node)
        while time.monotonic() < deadline and not wrong:
            with guard:
                if next(left, None) is None:
                    return
            try:
                state = _one_kill(fleet, node, env, before, chance.uniform(0, span * 1.1))
            except AssertionError as error:
                wrong.append(f"{node}: {error}")
                return
            ended[state] += 1

    lanes = [threading.Thread(target=lane, args=(node,)) for node in fleet.nodes]
    for one in lanes:
        one.start()
    for one in lanes:
        one.join()
    need(not wrong, "; ".join(wrong))
    say(
        f"{sum(ended.values())} kills: {dict(ended)}; none half-changed, all told rightly by the next apply, all undone to the byte"
    )


def _one_kill(fleet: real.RealFleet, node: str, env: Path, before: dict[str, Entry], after_s: float) -> str:
    """Kill once, and judge; returns in which state the environment was."""
    running = threading.Thread(target=_apply, args=(fleet, node))  # what it prints may be cut off
    running.start()
    running.join(after_s)
    fleet.killed(node)
    running.join()
    need(env.is_dir(), "the environment is gone")
    repaired = bool(changed(before, manifest(env)))
    if repaired:
        need(fleet.works(node), "changed, and the program fails")
    outcome = _applied(fleet, node).get("outcome")
    need(
        outcome == ("already" if repaired else "repaired"),
        f"{outcome}, and it was {'' if repaired else 'not '}repaired",
    )
    _back(fleet, node)
    need(not changed(before, manifest(env)), "undone, and not as it was")
    return "repaired when it died" if repaired else "as it was when it died"


def _apply(fleet: real.RealFleet, node: str) -> str:
    plan = next(fleet.place.glob("[A-Z].json"))
    return fleet.as_node(node, *real.ENVMEDIC, "apply", str(plan), "--yes", "--json", "--no-gpu").stdout


def _applied(fleet: real.RealFleet, node: str) -> dict[str, Any]:
    said = _apply(fleet, node)
    found: dict[str, Any] = json.loads(said) if said.startswith("{") else {}
    return found


def _back(fleet: real.RealFleet, node: str) -> None:
    good(fleet.as_node(node, *real.ENVMEDIC, "undo", "-p", str(fleet.case.prefix), "--yes", "--json"))


def _timed(work: Callable[[], object]) -> float:
    started = time.monotonic()
    work()
    return time.monotonic() - started


def main(arguments: list[str]) -> int:
    """Run the parts that are named, each in a directory of its own."""
    parser = argparse.ArgumentParser(prog="python -m tests.fleet.endurance", description=__doc__)
    parser.add_argument("parts", nargs="+", choices=["thousand", "kills", "undo"])
    parser.add_argument("--nodes", type=int, help="hosts of `thousand` (1,000) and nodes of `undo` (64)")
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--minutes", type=float, default=120, help="at most, for the kills")
    parser.add_argument("--seed", type=int, default=SEED)
    given = parser.parse_args(arguments)
    parts = {
        "thousand": lambda room: thousand(room, given.seed, given.nodes or NODES),
        "kills": lambda room: kills(room, given.seed, given.kills, given.minutes * 60),
        "undo": lambda room: taken_back(room, given.nodes or 64),
    }
    for part in given.parts:
        with tempfile.TemporaryDirectory(prefix=f"fleet-{part}-") as room:
            parts[part](Path(room))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
