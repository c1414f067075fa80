"""``python -m tests.gpu.occupied PREFIX``: a GPU that another process fills is named, and left out of checks.

A process fills the memory of the first GPU. Where there is a second one, ``verify`` must run on that alone and say so, and
a repair must be carried out and proven there. With the full one alone, the repair must end before anything is cloned, with
the environment as it was. Last, a program that runs out of memory there is diagnosed. Exit status 1 where something is
otherwise.
"""

from __future__ import annotations

# ruff: noqa: T201  # a table for people is what it is for
import argparse
import contextlib
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from envmedic.tree.walk import digest
from tests.gpu.replays.faults.torchvision import other_torch
from tests.gpu.replays.replay import envmedic
from tests.gpu.replays.room import Done, Room, copied

FILL = """
import sys, torch
held = []
while True:
    free = torch.cuda.mem_get_info(0)[0]
    if free < 600 << 20:
        break
    held.append(torch.empty((free - (400 << 20)) // 2, dtype=torch.uint8, device='cuda:0'))
print('full', torch.cuda.mem_get_info(0)[0] >> 20, flush=True)
sys.stdin.read()
"""
NO_ROOM = "import torch; torch.empty(8 << 30, dtype=torch.uint8, device='cuda:0')"


@contextlib.contextmanager
def filled(python: Path) -> Iterator[int]:
    """The first GPU is full meanwhile; yields the id of the process that holds its memory."""
    argv = (str(python), "-c", FILL)
    holder = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert holder.stdin is not None
    assert holder.stdout is not None
    try:
        line = holder.stdout.readline()
        if not line.startswith("full"):
            raise RuntimeError("the GPU could not be filled")
        print(f"process {holder.pid} holds GPU 0: {line.split()[1]} MiB are free", flush=True)
        yield holder.pid
    finally:
        holder.kill()
        holder.wait()


def devices(outcomes: Sequence[dict[str, Any]]) -> dict[str, list[str]]:
    """The statuses of what ran on GPUs, by the name that the checks had for the GPU."""
    found: dict[str, list[str]] = {}
    for item in outcomes:
        if (item["device"] or "").startswith("cuda"):
            found.setdefault(item["device"], []).append(item["status"])
    return {name: sorted(set(statuses)) for name, statuses in found.items()}


def said(done: Done) -> list[str]:
    """The lines that tell of the full GPU."""
    return [line.strip()[:300] for line in done.text.splitlines() if "is full" in line]


def beside_a_free_one(room: Room, log: Path, before: str) -> list[str]:
    """What is wrong where a second GPU is free."""
    wrong = []
    verified = envmedic(room, "verify", "--profile", "quick", "--json", "-p", str(room.prefix))
    print(
        f"verify: exit {verified.code}, {devices(json.loads(verified.out)['outcomes'])}\n  {said(verified)}", flush=True
    )
    if not any("checks run on 1 of 2 GPUs" in line for line in said(verified)):
        wrong.append("verify does not say on how many GPUs it ran")
    repaired = _apply(room, log)
    record = json.loads(repaired.out)
    ran = devices(record.get("checks_after", ()))
    print(f"apply: exit {repaired.code}, gpu {record.get('gpu')}, {ran}\n  {said(repaired)}", flush=True)
    if repaired.code != 0 or record["gpu"] != "verified" or not ran:
        wrong.append("the repair was not proven on the free GPU")
    envmedic(room, "undo", "-p", str(room.prefix), "--yes", "--json")
    return wrong + ([] if digest(room.prefix) == before else ["undo did not bring back the tree"])


def alone(room: Room, log: Path, before: str) -> list[str]:
    """What is wrong where the full GPU is the only one."""
    refused = _apply(room, log, CUDA_VISIBLE_DEVICES="0")
    print(f"apply on the full one alone: exit {refused.code}\n  {refused.text.strip()[-1500:]}", flush=True)
    wrong = [] if refused.code == 4 and said(refused) else ["a full GPU was not named, or the repair not refused"]
    if "cloning" in refused.text or digest(room.prefix) != before:
        wrong.append("something was done before it was refused")
    failed = room.run(room.python, "-c", NO_ROOM, CUDA_VISIBLE_DEVICES="0")
    text = room.folder / "memory.txt"
    text.write_text(failed.text, encoding="utf-8")
    told = envmedic(room, "diagnose", "-p", str(room.prefix), str(text))
    print(
        f"{failed.text.strip().splitlines()[-1][:200]}\ndiagnose: exit {told.code}\n{told.text.strip()[:1500]}",
        flush=True,
    )
    return wrong


def _apply(room: Room, log: Path, **variables: str) -> Done:
    given = ("--log", str(log), "--yes", "--offline", "--find-links", str(room.links), "--json")
    argv = (sys.executable, "-m", "envmedic", "apply", "-p", str(room.prefix), *given)
    return room.run(*argv, limit_s=400, cwd=Path(__file__).resolve().parents[2], **variables)


def main(arguments: Sequence[str]) -> int:
    """Run all of it; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prefix", type=Path)
    parser.add_argument("--wheels", type=Path, required=True, help="directory with a wheel of another torchvision")
    given = parser.parse_args(arguments)
    prefix = given.prefix.absolute()
    folder = prefix.parent / ".occupied"
    room = copied(prefix, folder, given.wheels.absolute(), {"UV_CACHE_DIR": str(folder / "uv-cache")})
    try:
        count = int(room.python_here("import torch; print(torch.cuda.device_count())"))
        command = other_torch(room)
        log = folder / "error.txt"
        log.write_text(room.activated(*command).text, encoding="utf-8")
        before = digest(room.prefix)
        with filled(prefix / "bin" / "python"):  # not of the copy, which would be in use
            wrong = beside_a_free_one(room, log, before) if count == 2 else []
            wrong += alone(room, log, before)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if count != 2:
        print(f"skipped: the checks on a free GPU, since {count} GPU is visible and not two")
    print("\n".join(wrong) or "as it should be")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
