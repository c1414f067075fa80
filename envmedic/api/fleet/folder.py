"""The directory of a fleet: plans, what the engine runs, and what each machine answered.

``fleet.json`` has classes and machines, ``A.json`` the plan for class A, ``results/NODE.json`` what `apply` printed on a
machine, ``undone/NODE.json`` what `undo` did; a machine to which a repair was given anew has its former ones in ``retried``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from envmedic.analysis.fleet import machines
from envmedic.analysis.fleet.machines import SentRecord
from envmedic.api.fleet import collected
from envmedic.errors import InputError
from envmedic.model.answers.fleet import ClassStatus, FleetStatus, NodeStatus, SilentNode
from envmedic.model.answers.rollout import FleetPlan, Rollout
from envmedic.model.base import from_json, to_json

FLEET, ROLLOUT, RESULTS, UNDONE, RETRIED = "fleet.json", "rollout.json", "results", "undone", "retried"
_NAME = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,200}[A-Za-z0-9_])?")
"""Names of machines: they become words of scripts, and names of files."""
_ABSENT = "it sent nothing"


def require_names(nodes: Iterable[str]) -> None:
    """Raise InputError for a machine whose name could be read as something else."""
    wrong = next((node for node in nodes if not _NAME.fullmatch(node)), None)
    if wrong is not None:
        raise InputError(
            f"{wrong!r} is no name of a machine", hint="Name machines, and the files of each, by letters, digits, . _ -"
        )


def fleet_of(folder: Path) -> FleetPlan:
    """Return what ``fleet plan`` wrote. Raises InputError."""
    hint = "Write it with `envmedic fleet plan FACTS -o DIR`"
    fleet = from_json(_read(folder / FLEET, hint), FleetPlan, source=str(folder / FLEET), hint=hint)
    require_names(node for item in fleet.classes for node in item.nodes)
    return fleet


def is_fleet(place: Path) -> bool:
    """Whether `place` is the directory of a fleet."""
    return (place / FLEET).is_file()


def begun(folder: Path) -> Rollout | None:
    """Return the rollout that was begun there; None before the first. Raises InputError."""
    if not (folder / ROLLOUT).is_file():
        return None
    return from_json(_read(folder / ROLLOUT, None), Rollout, source=str(folder / ROLLOUT))


def status(folder: Path, fleet: FleetPlan, plans: Mapping[str, str]) -> FleetStatus:
    """Return how the rollout ended on each machine; `plans` has the id of the plan of each class."""
    results, undone = _sent(folder / RESULTS), _sent(folder / UNDONE)
    nodes: list[NodeStatus] = []
    classes: list[ClassStatus] = []
    for item in fleet.classes:
        found = {node: results.get(node, SilentNode(node=node, why=_ABSENT)) for node in item.nodes}
        sent = {node: one for node, one in found.items() if isinstance(one, SentRecord)}
        silent = [one for one in found.values() if isinstance(one, SilentNode)]
        judged = [
            _undone(one, undone.get(one.node)) for one in machines.status(sent, silent, plan=plans.get(item.name)).nodes
        ]
        classes.append(ClassStatus(name=item.name, counts=machines.counted(judged), nodes=item.nodes))
        nodes += judged
    nodes += [NodeStatus(node=one.node, outcome="unknown", reason=one.why) for one in fleet.silent]
    nodes.sort(key=lambda one: one.node)
    return FleetStatus(counts=machines.counted(nodes), nodes=tuple(nodes), classes=tuple(classes))


def _undone(found: NodeStatus, after: SentRecord | SilentNode | None) -> NodeStatus:
    """The machine's end with the answer of its undo, which came later."""
    if not isinstance(after, SentRecord) or after.state != "undone":
        return found
    return msgspec.structs.replace(found, outcome="undone", transaction=after.transaction or found.transaction)


def undo_failures(folder: Path) -> Mapping[str, str]:
    """Return the machines whose undo failed, each with the reason; one that did not answer is not among them."""
    found = {node: sent for node, sent in _sent(folder / UNDONE).items() if isinstance(sent, SentRecord)}
    return {node: machines.reason(sent) for node, sent in found.items() if sent.state != "undone"}


def _sent(folder: Path) -> Mapping[str, SentRecord | SilentNode]:
    """What each machine sent, usable or not; nothing where nothing was sent yet."""
    if not folder.is_dir():
        return {}
    found, silent = collected.records(folder)
    return {**found, **{item.node: item for item in silent}}


def set_aside(folder: Path, nodes: Iterable[str]) -> None:
    """Take what these machines answered out of the count, and keep it. Raises InputError."""
    for node in nodes:
        for part in (RESULTS, UNDONE):
            source = folder / part / f"{node}.json"
            if source.is_file():
                try:
                    (folder / RETRIED).mkdir(exist_ok=True)
                    source.replace(folder / RETRIED / f"{node}.{part}.json")
                except OSError as error:
                    raise _unwritable(source, error) from error


def write(folder: Path, files: Mapping[str, str]) -> tuple[str, ...]:
    """Write files, scripts executable, each as a whole or not at all, and return their paths. Raises InputError."""
    for name, text in files.items():
        path = folder / name
        part = path.with_name(f".{name}.part")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with part.open("w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            if name.endswith(".sh"):
                part.chmod(0o755)
            part.replace(path)
        except OSError as error:
            raise _unwritable(path, error) from error
    return tuple(str(folder / name) for name in files)


def document(value: object) -> str:
    """A value as the text of a file."""
    return to_json(value) + "\n"


def _unwritable(path: Path, error: OSError) -> InputError:
    return InputError(f"{path} cannot be written", cause=error.strerror, hint="Name another directory")


def _read(path: Path, hint: str | None) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read", cause=error.strerror, hint=hint) from error
