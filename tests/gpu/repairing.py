"""``python -m tests.gpu.repairing PREFIX``: how long a repair of one wheel takes on a GPU, by stage, and the way back.

In a copy of the environment (hard links) torchvision is replaced by one for another torch, as in the replay
`torchvision-other-torch`, and the program that fails is repaired by `envmedic apply --log`. Then come `undo`, `redo`,
`verify --profile quick` and `standard`, and bare imports to compare with. Exit status 1 where one does not end as it should.
"""

from __future__ import annotations

# ruff: noqa: T201  # a table for people is what it is for
import argparse
import json
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

from envmedic.tree.walk import digest
from tests.gpu.replays.faults.torchvision import other_torch
from tests.gpu.replays.replay import envmedic
from tests.gpu.replays.room import Done, Room, copied

IMPORT = "import torch, torchvision"
SMOKE = f"{IMPORT}, torchaudio"
T = TypeVar("T")


class Clock:
    """Seconds of each thing that was timed, by name, in the order of their measuring."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = {}

    def __call__(self, name: str, work: Callable[[], T]) -> T:
        """Do the work, and print how long it took."""
        started = time.monotonic()
        result = work()
        self.seconds.setdefault(name, []).append(time.monotonic() - started)
        print(f"{self.seconds[name][-1]:8.2f} s  {name}", flush=True)
        return result


def must(done: Done, *, code: int = 0) -> Done:
    """Raise RuntimeError where a command did not end with `code`."""
    if done.code != code:
        raise RuntimeError(f"{' '.join(done.argv[-8:])}: exit status {done.code}\n{done.text[-3000:]}")
    return done


def repaired(room: Room, clock: Clock, command: Sequence[str], number: int) -> dict[str, Any]:
    """Repair, undo and redo once; returns the times of the repair by stage and check."""
    failed = clock("the program in the broken environment", lambda: room.activated(*command))
    if failed.code == 0:
        raise RuntimeError("the program works in the broken environment")
    log, events = room.folder / "error.txt", room.folder / f"events-{number}"
    log.write_text(failed.text, encoding="utf-8")
    before = digest(room.prefix)
    given = ("--log", str(log), "--yes", "--offline", "--find-links", str(room.links), "--json")
    apply = ("apply", "-p", str(room.prefix), *given, "--events", str(events))
    done = must(clock("apply", lambda: envmedic(room, *apply, limit_s=400)))
    record = json.loads(done.out)
    print(
        f"           state {record['state']}, gpu {record['gpu']}, {len(record['checks_after'])} outcomes", flush=True
    )
    must(clock("the program in the repaired environment", lambda: room.activated(*command)))
    back = ("-p", str(room.prefix), "--yes", "--json")
    must(clock("undo", lambda: envmedic(room, "undo", *back)))
    if digest(room.prefix) != before:
        raise RuntimeError("undo did not bring back the tree")
    must(clock("redo", lambda: envmedic(room, "redo", *back)))
    return {"record": _shortened(record), "stages": stages(events)}


def _shortened(record: dict[str, Any]) -> dict[str, Any]:
    kept = ("state", "gpu", "clone", "staging", "seconds", "notes")
    slow = sorted(record["checks_after"], key=lambda item: -item["seconds"])
    return {name: record[name] for name in kept if name in record} | {
        "outcomes": [(item["check"], item["device"], item["status"], round(item["seconds"], 2)) for item in slow]
    }


def stages(events: Path) -> list[tuple[str, float, float]]:
    """Each stage of a repair with the seconds at which it began and ended, and each check when it ended."""
    told = [json.loads(line) for line in events.read_text(encoding="utf-8").splitlines()]
    first = told[0]["time"]
    rows = []
    for event in told:
        data, at = event["data"], event["time"] - first
        if data["type"] == "stage-finished":
            rows.append((data["stage"], round(at - data["seconds"], 2), round(at, 2)))
        if data["type"] == "check-finished":
            outcome = data["outcome"]
            name = f"  {data['phase']}: {outcome['check']} {outcome['device'] or ''} {outcome['status']}"
            rows.append((name.rstrip(), round(at - outcome["seconds"], 2), round(at, 2)))
    return rows


def main(arguments: Sequence[str]) -> int:
    """Measure; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prefix", type=Path)
    parser.add_argument("--wheels", type=Path, required=True, help="directory with a wheel of another torchvision")
    parser.add_argument("--folder", type=Path, help="where the copy is made, on the same file system")
    parser.add_argument("--rounds", type=int, default=2, help="repairs (default: %(default)s)")
    parser.add_argument("--profiles", default="quick,standard", help="comma-separated (default: %(default)s)")
    parser.add_argument("--json", type=Path, help="write everything to this file")
    given = parser.parse_args(arguments)
    prefix = given.prefix.absolute()
    folder = (given.folder or prefix.parent / ".repairing").absolute()
    clock, found = Clock(), []
    room = copied(prefix, folder, given.wheels.absolute(), {"UV_CACHE_DIR": str(folder / "uv-cache")})
    try:
        python = (room.python, "-c")
        for _ in range(2):
            must(clock("import torch, torchvision", lambda: room.run(*python, IMPORT)))
        must(clock("import torch, torchvision, torchaudio", lambda: room.run(*python, SMOKE)))
        command = other_torch(room)
        for number in range(given.rounds):
            if number:
                must(envmedic(room, "undo", "-p", str(room.prefix), "--yes", "--json"))
            found.append(repaired(room, clock, command, number))
        for profile in filter(None, given.profiles.split(",")):
            for _ in range(2 if profile == "quick" else 1):
                argv = ("verify", "--profile", profile, "--json", "-p", str(room.prefix))
                done = clock(f"verify --profile {profile}", partial(envmedic, room, *argv, limit_s=300))
                document = json.loads(done.out)
                bad = [item for item in document["outcomes"] if item["status"] not in ("pass", "skip")]
                print(f"           exit {done.code}, gpu {document['gpu']}; not passed: {bad[:5]}", flush=True)
                found.append({"profile": profile, "exit": done.code, "outcomes": _slow(document["outcomes"])})
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    medians = {name: round(median(times), 2) for name, times in clock.seconds.items()}
    print(json.dumps(medians, indent=1))
    for row in found[0]["stages"]:
        print(f"{row[1]:7.2f} {row[2]:7.2f}  {row[0]}")
    if given.json:
        given.json.write_text(json.dumps({"seconds": clock.seconds, "runs": found}, indent=1), encoding="utf-8")
    return 0


def _slow(outcomes: Sequence[dict[str, Any]]) -> list[tuple[str, str | None, str, float]]:
    slow = sorted(outcomes, key=lambda item: -item["seconds"])
    return [(item["check"], item["device"], item["status"], round(item["seconds"], 2)) for item in slow]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
