"""One repair as it was: what the real engine said of a real small environment, with paths of nobody's machine.

Snapshots show it, so that they change only when what draws them does. ``python -m tests.tui.snapshots --record`` makes
it anew.
"""

from __future__ import annotations

import os
import platform
import sys
import tempfile
from pathlib import Path
from unittest import mock

import msgspec

import envmedic
from envmedic.api import generations
from envmedic.api.context.observation import read_host
from envmedic.api.context.settings import RepairRequest, Settings
from envmedic.api.diagnosis import diagnose
from envmedic.api.repair import carry_out, prepare
from envmedic.installers.uv import find_uv
from envmedic.model.events import Event, EventStream
from envmedic.model.facts import Facts
from envmedic.model.findings import Diagnosis
from envmedic.model.plan import Plan
from envmedic.model.ports import ApplyOptions
from envmedic.model.record import Difference, History, Record
from tests.envs.nms_cuda.case import Case, build
from tests.support.cuda_family import host_file

FILE = Path(__file__).resolve().parent / "recorded.json"
LOG = Path(__file__).resolve().parent.parent / "envs" / "nms_cuda" / "sample_operator_does_not_exist.log"
HOME = "/home/me/vision"


class Recorded(msgspec.Struct, frozen=True, kw_only=True):
    """All that the screens show of it."""

    alone: Diagnosis
    """By facts alone."""
    joined: Diagnosis
    """By the error text and the facts."""
    plan: Plan
    events: tuple[Event, ...]
    """Of the repair."""
    record: Record
    history: History
    outside: Difference
    """After one file was edited and one added."""


def load() -> Recorded:
    """What was recorded last."""
    return msgspec.json.decode(FILE.read_bytes(), type=Recorded)


def record() -> None:
    """Repair a small environment, and keep what was said."""
    with tempfile.TemporaryDirectory() as folder:
        room = Path(folder)
        case = build(room / "vision")
        variables = {
            **case.index_variables(),
            "XDG_CACHE_HOME": str(room / "cache"),
            "HOME": str(room),
            "PATH": os.defpath,
        }
        with mock.patch.dict(os.environ, variables):
            found = _recorded(case, room)
        text = msgspec.json.encode(found).decode()
        for path, shown in _names(room):
            text = text.replace(path, shown)
        text = text.replace(platform.release(), "6.8.0-45-generic")
        FILE.write_text(text + "\n", encoding="utf-8")


def _recorded(case: Case, room: Path) -> Recorded:
    events: list[Event] = []
    settings = Settings(stream=EventStream([events.append]), find_links=(str(case.wheels),), offline=True)
    (alone,) = diagnose(settings, case.prefix, [])
    (joined,) = diagnose(settings, case.prefix, [str(LOG)])
    prepared = prepare(settings, case.prefix, RepairRequest(log=str(LOG)))
    assert not isinstance(prepared, Diagnosis)
    events.clear()
    made = carry_out(prepared, ApplyOptions(no_gpu=True, offline=True), lambda _plan: True)
    assert made.environment == "repaired", made.error
    history = generations.history(settings, case.prefix)
    (case.prefix / "notes.txt").write_text("mine")
    with case.edited.open("a", encoding="utf-8") as file:
        file.write("\n# once more\n")
    return Recorded(
        alone=_on_host(alone, room),
        joined=msgspec.structs.replace(joined, facts=None),
        plan=prepared.plan,
        events=tuple(events),
        record=made,
        history=history,
        outside=generations.difference(settings, case.prefix),
    )


def _on_host(found: Diagnosis, room: Path) -> Diagnosis:
    """As on a machine with a GPU, which is nobody's."""
    assert found.facts is not None
    host = msgspec.structs.replace(read_host(Path(host_file(room))), source="observed")
    facts: Facts = msgspec.structs.replace(found.facts, host=host)
    return msgspec.structs.replace(found, facts=facts)


def _names(room: Path) -> list[tuple[str, str]]:
    """Paths of this machine, longest first, with what stands for them."""
    base = os.path.realpath(sys.base_prefix)
    own = {str(room / "vision"): HOME, str(room): "/home/me", base: "/usr/local", sys.base_prefix: "/usr/local"}
    own |= {str(LOG): f"{HOME}/error.log", str(Path(find_uv()).parent): "/opt/envmedic/bin"}
    own |= {os.path.realpath(room): "/home/me", str(Path(envmedic.__file__).parent.parent): "/opt/envmedic"}
    return sorted(own.items(), key=lambda item: -len(item[0]))
