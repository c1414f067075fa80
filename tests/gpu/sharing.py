"""``python -m tests.gpu.sharing PREFIX``: two machines, each with a GPU, repair an environment that they share.

Each machine is a mount, host name and process namespace with a home and one of two GPUs of its own. In a copy of the
environment (hard links) torchvision is replaced by one for another torch. The first machine repairs, the second one is
its witness, and `undo` takes the repair back; then again, with a witness without its GPU, so that the repair must be given
up. Exit status 1 where one does not end as it should.
"""

from __future__ import annotations

# ruff: noqa: T201  # a table for people is what it is for
import argparse
import json
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from envmedic.tree.walk import digest
from tests.gpu.replays.faults.torchvision import other_torch
from tests.gpu.replays.room import Done, Room, copied

ROOT = Path(__file__).resolve().parents[2]
MACHINE = ("unshare", "-m", "-p", "-u", "--fork", "--kill-child=KILL", "sh", "-c")
STARTED = 'mount -t proc proc /proc && hostname "$0" && { "$@"; exit $?; }'
LIMIT_S = 240.0


def on(room: Room, machine: str, *words: str, **more: str) -> Done:
    """Run a command as a machine, to its end."""
    home = room.folder / machine
    home.mkdir(exist_ok=True)
    own = {"HOME": str(home), "XDG_CACHE_HOME": str(home / "cache"), **more}
    return room.run(*MACHINE, STARTED, machine, *words, limit_s=LIMIT_S, cwd=ROOT, **own)


def envmedic(room: Room, machine: str, gpu: str, *words: str) -> Done:
    """Run envmedic as a machine that has this GPU."""
    return on(room, machine, sys.executable, "-m", "envmedic", *words, "--json", CUDA_VISIBLE_DEVICES=gpu)


def repaired(room: Room, log: Path, gpus: Mapping[str, str], *options: str) -> tuple[Done, Done]:
    """Repair as the first machine with the second as the witness; returns how both ended."""
    prefix = ("-p", str(room.prefix))
    given = ("--log", str(log), "--yes", "--offline", "--find-links", str(room.links), "--witnesses", "second")
    with ThreadPoolExecutor(2) as both:
        witness = both.submit(
            envmedic, room, "second", gpus["second"], "fleet", "witness", *prefix, "--limit", "200", *options
        )
        repair = both.submit(envmedic, room, "first", gpus["first"], "apply", *prefix, *given)
        return repair.result(), witness.result()


def shown(name: str, began: float, repair: Done, witness: Done) -> tuple[dict[str, Any], dict[str, Any]]:
    """Print how a repair ended, and what its witness answered; returns both documents."""
    record, report = json.loads(repair.out), json.loads(witness.out)
    print(f"{time.monotonic() - began:7.1f} s  {name}: exit {repair.code}, witness exit {witness.code}")
    print(f"           environment {record['environment']}, gpu {record.get('gpu')}, {record.get('failure')}")
    for item in record.get("witnesses", ()):
        print(f"           {item}")
    for given in report["answers"]:
        passed = sum(outcome["status"] == "pass" for outcome in given["outcomes"])
        print(
            f"           answer {given['number']} {given['kind']}: passed {given['passed']}, {passed} of "
            f"{len(given['outcomes'])} outcomes pass, gpus {given['gpus']}, {given['seconds']:.1f} s {given['why']}",
            flush=True,
        )
    return record, report


def main(arguments: Sequence[str]) -> int:
    """Repair as two machines; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prefix", type=Path)
    parser.add_argument("--wheels", type=Path, required=True, help="directory with a wheel of another torchvision")
    parser.add_argument(
        "--gpus", default="0,1", help="the GPU of each machine; one can be of both (default: %(default)s)"
    )
    given = parser.parse_args(arguments)
    prefix = given.prefix.absolute()
    first, second = given.gpus.split(",")
    folder = prefix.parent / ".sharing"
    room = copied(prefix, folder, given.wheels.absolute(), {"UV_CACHE_DIR": str(folder / "uv-cache")})
    wrong = []
    try:
        command = other_torch(room)
        failed = room.activated(*command)
        log = folder / "error.txt"
        log.write_text(failed.text, encoding="utf-8")
        before = digest(room.prefix)
        began = time.monotonic()
        record, _ = shown("witness with its GPU", began, *repaired(room, log, {"first": first, "second": second}))
        if record["environment"] != "repaired" or not all(item["proved"] for item in record["witnesses"]):
            wrong.append("the repair did not end with the proof of both machines")
        for machine, gpu in (("first", first), ("second", second)):
            path = {"PATH": f"{room.prefix}/bin:/usr/bin:/bin", "CUDA_VISIBLE_DEVICES": gpu}
            works = on(room, machine, str(room.python), *command[1:], **path)
            print(f"           the program as the {machine} machine: exit {works.code}")
            wrong += [f"the program fails on the {machine} machine"] if works.code != 0 else []
        undone = envmedic(room, "first", first, "undo", "-p", str(room.prefix), "--yes")
        same = digest(room.prefix) == before
        print(f"           undo: exit {undone.code}, {'byte for byte' if same else 'another tree'}", flush=True)
        wrong += [] if same else ["undo did not bring back the tree"]
        began = time.monotonic()
        refused, _ = shown("witness without its GPU", began, *repaired(room, log, {"first": first, "second": ""}))
        if refused["environment"] != "unchanged" or digest(room.prefix) != before:
            wrong.append("a repair that its witness could not prove took place")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print("\n".join(wrong) or "as it should be")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
