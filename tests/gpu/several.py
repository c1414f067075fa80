"""``python -m tests.gpu.several PREFIX``: on a machine with several GPUs, each check tells of each GPU by itself.

First ``envmedic verify --profile full``: every check that runs on GPUs must have passed on each of them, and the
all-reduce over all of them. Then functions of torch are broken for the tensors of the last GPU alone: the checks must
report that one, and pass on the others; in the all-reduce, one process of several is broken. Exit status 1 where
something is otherwise, and 0, with a word, where there are fewer than two GPUs.
"""

from __future__ import annotations

# ruff: noqa: T201  # a table for people is what it is for
import argparse
import dataclasses
import json
import re
import sys
from pathlib import Path
from typing import Any

from tests.gpu.checks import EXPECTED, VICTIMS, Options, Row, Victim, session, verified

CHECKS = ("matmul", "conv", "fft", "linalg", "attention", "torchvision-nms", "all-reduce")
"""Each kind of work once; what copies from one GPU to another concerns both, and is left out."""
TOGETHER = "all-reduce"


def per_gpu(outcomes: list[dict[str, Any]]) -> dict[str, dict[str, str]]:
    """The status of each part of a check by GPU, of the outcomes of a verification."""
    found: dict[str, dict[str, str]] = {}
    for item in outcomes:
        device = item["device"] or ""
        if device.startswith("cuda"):
            found.setdefault(item["check"], {})[device.partition(" ")[0]] = item["status"]
    return found


def gaps(table: dict[str, dict[str, str]]) -> list[str]:
    """What is missing in the table: a GPU that a check tells nothing of, or on which it did not pass."""
    gpus = sorted({device for row in table.values() for device in row if ":" in device})
    wrong = []
    for check, row in table.items():
        wanted = ["cuda"] if list(row) == ["cuda"] else gpus
        wrong += [
            f"{check} on {device}: {row.get(device, 'nothing')}"
            for device in wanted
            if row.get(device) not in {"pass", "skip"}  # a skip says why
        ]
    return wrong


def lines_of(options: Options, kind: str, victims: list[Victim]) -> list[Row]:
    """One line for each part and GPU, of a session in which calls on the one GPU alone are broken."""
    parts = {victim.part for victim in victims}
    outcomes = [item for item in session(options, kind, victims) if item["check"] in parts]
    return [line(options.on, kind, item) for item in outcomes if (item["device"] or "").startswith("cuda")]


def line(broken: str, kind: str, outcome: dict[str, Any]) -> Row:
    """Whether the GPU that was broken, and it alone, is reported."""
    device, status, reason = outcome["device"].partition(" ")[0], str(outcome["status"]), str(outcome["reason"])
    expected, says = EXPECTED[kind] if device == broken or outcome["check"] == TOGETHER else ("pass", "")
    told = expected == "pass" or re.search(says, reason) is not None or outcome["check"] == TOGETHER
    return Row(
        kind=kind,
        part=outcome["check"],
        device=device,
        status=status,
        expected=expected,
        good=status == "skip" or (status == expected and told),
        seconds=round(outcome.get("seconds", 0.0), 2),
        reason=reason[:200],
    )


def main(arguments: list[str]) -> int:
    """Run all of it; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prefix", type=Path)
    parser.add_argument("--kinds", default="wrong,missing,fault,crash,hang", help="comma-separated")
    parser.add_argument(
        "--hang", type=float, default=40.0, help="seconds for a check that hangs (default: %(default)s)"
    )
    parser.add_argument("--on", default="", help="break this GPU, such as cuda:1, and leave the verification out")
    parser.add_argument("--json", type=Path, help="write everything to this file")
    given = parser.parse_args(arguments)
    found = {} if given.on else verified(Options(given.prefix, "cuda", (), (), 240.0, given.hang))
    table = per_gpu(found["document"]["outcomes"]) if found else {}
    gpus = [given.on] if given.on else sorted({device for row in table.values() for device in row if ":" in device})
    if len(gpus) < 2 and not given.on:
        print(f"skipped: {len(gpus)} GPU is visible, and this is about several")
        return 0
    wrong = gaps(table)
    if found:
        say_verified(found, table, wrong)
    options = Options(given.prefix, "cuda", (), (), 240.0, given.hang, on=gpus[-1])
    victims = [item for item in VICTIMS if item.check in CHECKS]
    lines = [item for kind in given.kinds.split(",") for item in shown(lines_of(options, kind, victims))]
    bad = [item for item in lines if not item.good]
    print(f"{len(lines)} results while {options.on} alone was broken, {len(lines) - len(bad)} as they should be")
    if given.json:
        rows = [dataclasses.asdict(item) for item in lines]
        given.json.write_text(
            json.dumps({"verify": found, "table": table, "broken": options.on, "rows": rows}, indent=1)
        )
    return 1 if bad or wrong or not lines else 0


def say_verified(found: dict[str, Any], table: dict[str, dict[str, str]], wrong: list[str]) -> None:
    """Print what the verification told of each GPU."""
    for check, row in table.items():
        print(f"{check:24} " + "  ".join(f"{device} {status}" for device, status in sorted(row.items())))
    print(f"verify: exit {found['exit']} in {found['seconds']} s; not passed: {wrong or 'nothing'}", flush=True)


def shown(lines: list[Row]) -> list[Row]:
    """The lines, printed."""
    for item in lines:
        word = "ok " if item.good else "BAD"
        print(
            f"{word} {item.kind:8} {item.part:20} {item.device:8} {item.status:8} {item.seconds:7.2f} s  {item.reason[:100]}"
        )
    sys.stdout.flush()
    return lines


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
