"""``python -m tests.gpu.hosts PREFIX``: a build for GPUs of two kinds, by the facts of another host.

The facts of this host get a second GPU, of another capability, and become those of a node (``--host``). With a list of
architectures that no toolkit knows, the plan's list must name both; an extension that is built with it here must hold
code for both, and run here. Of a node whose second GPU is newer than all that torch's run-time compiler knows, facts
must tell that. Exit status 1 where one of these is otherwise.
"""

from __future__ import annotations

# ruff: noqa: T201  # a table for people is what it is for
import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.gpu.replays.faults import extensions
from tests.gpu.replays.replay import NotHere, envmedic
from tests.gpu.replays.room import Room, copied

OTHERS = ("8.6", "8.0")
"""Capabilities of the second GPU: the first that no GPU here has."""


NEWER = "99.0"
"""A capability that no release of CUDA knows."""


def mixed(facts: dict[str, Any], *others: str) -> tuple[dict[str, Any], list[str]]:
    """The facts with a second GPU, of the first of `others` that no GPU here has, and all capabilities."""
    gpus = facts["host"]["gpus"]
    present = [item["compute_capability"] for item in gpus]
    other = next(item for item in others if item not in present)
    more = {**gpus[0], "index": len(gpus), "name": "another GPU", "compute_capability": other, "uuid": None}
    host = {**facts["host"], "gpus": [*gpus, more]}
    return {**facts, "host": host}, sorted({*present, other}, key=float)


def planned(room: Room) -> tuple[str, list[str]]:
    """The list of architectures that a plan sets for a node with GPUs of two kinds, and their capabilities."""
    room.variable("TORCH_CUDA_ARCH_LIST", "'9.0;10.1'")
    node, capabilities = as_node(room, *OTHERS)
    plan = json.loads(envmedic(room, "plan", "--playbook", "cuda-arch-list", *node).must().out)
    variables = [step["variables"] for step in plan["steps"] if "variables" in step]
    return variables[0]["TORCH_CUDA_ARCH_LIST"], capabilities


def as_node(room: Room, *others: str) -> tuple[tuple[str, ...], list[str]]:
    """The options that name the environment and a node as of `mixed`, and its capabilities."""
    facts = json.loads(envmedic(room, "facts", "--host-only", "--json").must().out)
    node, capabilities = mixed(facts, *others)
    file = room.folder / "node.json"
    file.write_text(json.dumps(node), encoding="utf-8")
    return ("-p", str(room.prefix), "--host", str(file), "--json"), capabilities


def unknown_to_nvrtc(room: Room) -> list[str]:
    """Playbooks of what facts tell of a node with a GPU that torch's run-time compiler does not know."""
    node, _ = as_node(room, NEWER)
    document = json.loads(envmedic(room, "diagnose", *node).out)
    return [item["playbook"] for item in document["findings"] if item["confirmed"]]


def built(room: Room, listed: str) -> list[str]:
    """Build the extension for the list; the architectures that its code is for, as envmedic reads them."""
    home = extensions.toolkit(room)
    room.install(extensions.source(room), FORCE_CUDA="1", TORCH_CUDA_ARCH_LIST=listed, CUDA_HOME=str(home))
    facts = json.loads(envmedic(room, "facts", "-p", str(room.prefix), "--json").must().out)
    modules = [item for item in facts["environment"]["extensions"] if item["distribution"] == "replay-attention"]
    return sorted({name for item in modules for name in item["sass"]}, key=float)


def say(text: str) -> None:
    """Print a line at once."""
    print(text, flush=True)


def main(arguments: list[str]) -> int:
    """Go through it; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prefix", type=Path)
    parser.add_argument("--folder", type=Path, help="where a copy is made, on the same file system")
    parser.add_argument("--json", type=Path, help="write everything to this file")
    given = parser.parse_args(arguments)
    folder = (given.folder or given.prefix.absolute().parent / ".replays") / "mixed-gpus"
    say(f"copying {given.prefix} to {folder}")
    room = copied(given.prefix.absolute(), folder, folder / "wheels", {})
    try:
        listed, capabilities = planned(room)
        say(f"GPUs {', '.join(capabilities)}: planned {listed}; now an extension is built for them")
        code = built(room, listed)
        say(f"code for {', '.join(code)}; now it runs")
        runs = subprocess.run([room.python, "-c", extensions.USE], capture_output=True, text=True, check=False)
        newer = unknown_to_nvrtc(room)
    except NotHere as reason:
        say(f"skipped: {reason}")
        return 0
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    good = listed.removesuffix("+PTX").split(";") == capabilities == code and runs.returncode == 0
    good = good and "nvrtc-arch" in newer
    found = {
        "capabilities": capabilities,
        "planned": listed,
        "code": code,
        "runs": runs.returncode == 0,
        "newer": newer,
    }
    say(f"{'ok' if good else 'WRONG'}: runs: {found['runs']} {runs.stderr[-800:]}; of a newer GPU: {', '.join(newer)}")
    if given.json:
        given.json.write_text(json.dumps(found, indent=1))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
