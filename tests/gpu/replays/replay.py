"""One replay: a genuine fault, what envmedic makes of it, and whether the program that failed then works."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from envmedic.tree.walk import digest
from tests.gpu.replays.room import Done, Room

ROOT = Path(__file__).resolve().parents[3]
REPAIR_LIMIT_S = 420.0
Command = tuple[str, ...]


class NotHere(Exception):
    """The fault cannot be provoked on this machine, with the reason."""


@dataclass(frozen=True)
class Replay:
    """A fault that can be provoked."""

    name: str
    title: str
    playbooks: frozenset[str]
    """The playbooks of which one must be found, from the text first and from the facts."""
    provoke: Callable[[Room], Command]
    """Breaks the copy and returns the command that fails in it. Raises NotHere where this machine cannot show it."""
    facts: bool = True
    """Whether facts alone can tell, without the error text."""
    ending: str = "repaired"
    """``repaired``, or ``advised``: what to do is said, and nothing is changed."""
    left: tuple[tuple[str, str], ...] = ()
    """Variables that an activated shell has after the repair, and what they then are: names and regular expressions."""
    staging: str = ""
    """How commands of the repair must have run: ``namespace`` or ``relocate``; any way by default."""
    notes: Callable[[Room], str] | None = None
    """What else is worth knowing of how the command ended."""
    playbook: str = ""
    """Another playbook to repair with, as text: one of the user's own."""


@dataclass
class Result:
    """What came of a replay; a column is None where it was not reached."""

    name: str
    title: str
    broken: bool | None = None
    text: str | None = None
    """Playbook of the best finding from the text, with the playbooks that were found after it."""
    by_text: bool | None = None
    facts: str | None = None
    by_facts: bool | None = None
    repaired: bool | None = None
    gpu: str = ""
    passes: bool | None = None
    undone: bool | None = None
    redone: bool | None = None
    ok: bool = False
    skipped: str = ""
    error: str = ""
    seconds: dict[str, float] = field(default_factory=dict)
    sample: str = ""
    """The command and the end of what it printed in the broken environment."""
    record: dict[str, Any] = field(default_factory=dict)


def perform(replay: Replay, room: Room, *, gpu: bool, repair: bool = True) -> Result:
    """Go through one replay, to the repair or without it; whatever goes wrong is told in the result."""
    result = Result(replay.name, replay.title)
    try:
        _perform(replay, room, result, gpu=gpu, repair=repair)
    except NotHere as reason:
        result.skipped = str(reason)
    except (OSError, RuntimeError, ValueError, KeyError) as error:
        result.error = f"{type(error).__name__}: {error}"
    return result


def _perform(replay: Replay, room: Room, result: Result, *, gpu: bool, repair: bool) -> None:
    command = _timed(result, "provoke", lambda: replay.provoke(room))
    failed = _timed(result, "command", lambda: room.activated(*command))
    result.broken = failed.code != 0
    result.sample = f"$ {' '.join(command)}\n{_ends(failed.text)}\nexit status {failed.code}\n"
    if replay.notes is not None:
        result.sample += f"{replay.notes(room)}\n"
    result.sample = result.sample.replace(str(room.folder), "/home/user/project")
    if not result.broken:
        return
    log = room.folder / "error.txt"
    log.write_text(failed.text, encoding="utf-8")
    _diagnose(replay, room, result, log)
    if not repair:
        result.ok = _told(replay, result)
        return
    before = digest(room.prefix)
    done = _timed(result, "apply", lambda: _apply(replay, room, log, gpu=gpu))
    result.record = _summary(_document(done), done)
    if replay.ending == "advised":
        result.repaired = done.code != 0 and digest(room.prefix) == before
        result.ok = bool(result.by_text and result.repaired)
        return
    result.repaired = done.code == 0
    result.gpu = str(result.record.get("gpu", ""))
    if not result.repaired:
        return
    result.passes = room.activated(*command).code == 0 and _as_left(replay, room)
    result.undone = _timed(result, "undo", lambda: _generation(room, "undo")).code == 0
    result.undone = result.undone and digest(room.prefix) == before and room.activated(*command).code != 0
    result.redone = _timed(result, "redo", lambda: _generation(room, "redo")).code == 0
    result.redone = result.redone and room.activated(*command).code == 0
    staged = replay.staging in ("", result.record.get("staging"))
    verified = result.gpu == "verified" or not gpu
    gone_through = bool(result.passes and result.undone and result.redone)
    result.ok = staged and verified and _told(replay, result) and gone_through


def _told(replay: Replay, result: Result) -> bool:
    """Whether the fault was found from what it is to be found from."""
    return bool(result.by_text and (result.by_facts or not replay.facts))


def _as_left(replay: Replay, room: Room) -> bool:
    """Whether an activated shell has the variables that the repair was to leave."""
    found = {name: room.activated("printenv", name).out.strip() for name, _ in replay.left}
    return all(re.fullmatch(pattern, found[name]) for name, pattern in replay.left)


def _ends(text: str) -> str:
    """A text's beginning and end: some errors begin with the sentence that matters, others end with it."""
    return text if len(text) <= 6000 else f"{text[:3000]}\n[…]\n{text[-3000:]}"


def _diagnose(replay: Replay, room: Room, result: Result, log: Path) -> None:
    """From the text with the environment, then from the environment alone."""
    by_text = _timed(result, "diagnose", lambda: _findings(room, str(log)))
    result.text, result.by_text = _named(by_text), bool(by_text) and by_text[0] in replay.playbooks
    by_facts = _findings(room)
    result.facts, result.by_facts = _named(by_facts), any(item in replay.playbooks for item in by_facts)


def _named(playbooks: list[str]) -> str:
    return ", ".join(dict.fromkeys(playbooks)) or "nothing"


def _findings(room: Room, *options: str) -> list[str]:
    """Playbooks of what was found, best first, refuted ones left out."""
    done = envmedic(room, "diagnose", "-p", str(room.prefix), *options, "--json")
    document = _document(done)
    if "findings" not in document:
        raise RuntimeError(f"envmedic diagnose: {document.get('summary')}: {document.get('cause')}")
    found = document["findings"]
    return [str(item["playbook"] or item["fault"]) for item in found if item["confirmed"] is not False]


def _apply(replay: Replay, room: Room, log: Path, *, gpu: bool) -> Done:
    where = ("--offline", "--find-links", str(room.links))
    without = () if gpu else ("--no-gpu",)
    named: tuple[str, ...] = ()
    if replay.playbook:
        path = room.folder / "own-playbook.yaml"
        path.write_text(replay.playbook, encoding="utf-8")
        named = ("--playbook", str(path))
    options = ("--log", str(log), *named, "--yes", *where, *without, "--json")
    return envmedic(room, "apply", "-p", str(room.prefix), *options, limit_s=REPAIR_LIMIT_S)


def _generation(room: Room, verb: str) -> Done:
    return envmedic(room, verb, "-p", str(room.prefix), "--yes", "--json")


def envmedic(room: Room, *arguments: str, limit_s: float = 240.0) -> Done:
    """Run the command of this checkout."""
    return room.run(sys.executable, "-m", "envmedic", *arguments, limit_s=limit_s, cwd=ROOT)


def _document(done: Done) -> dict[str, Any]:
    try:
        document: dict[str, Any] = json.loads(done.out)
    except ValueError as error:
        raise RuntimeError(f"no document, exit status {done.code}: {done.text[-1500:]}") from error
    return document


def _summary(document: dict[str, Any], done: Done) -> dict[str, Any]:
    """What of a record is worth keeping: the plan's steps, the checks, and what went wrong."""
    outcomes = document.get("checks_after", ())
    on_gpu = [item for item in outcomes if (item.get("device") or "").startswith("cuda")]
    found: dict[str, Any] = {
        "exit": done.code,
        **{
            key: document[key] for key in ("state", "gpu", "clone", "staging", "exchange", "seconds") if key in document
        },
        "playbook": (document.get("plan") or {}).get("playbook"),
        "steps": [_shortened(step) for step in (document.get("plan") or {}).get("steps", ())],
        "rounds": [item.get("summary", "") for item in document.get("rounds", ())],
        "gpu_checks": {f"{item['check']} {item['device']}": item["status"] for item in on_gpu},
        "not_passed": [_shortened(item) for item in outcomes if item["status"] not in ("pass", "skip")],
        "notes": document.get("notes", ()),
    }
    if done.code != 0:
        wrong = document.get("failure") or document.get("error") or document
        found["said"] = json.dumps(wrong)[:3000]
        found["narration"] = done.err[-2500:]
    return found


def _shortened(item: dict[str, Any]) -> dict[str, Any]:
    return {key: value if not isinstance(value, str) else value[:400] for key, value in item.items() if value}


def _timed(result: Result, name: str, work: Callable[[], Any]) -> Any:
    started = time.monotonic()
    try:
        return work()
    finally:
        result.seconds[name] = round(time.monotonic() - started, 1)
