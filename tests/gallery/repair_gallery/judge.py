"""What an environment is and does, found out without envmedic, and what a repair may change of it."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import Distribution, PathDistribution
from pathlib import Path, PurePosixPath
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from .room import Room

Entry = tuple[int, str, int]
Listing = dict[str, Entry]
"""Mode, digest (of a link: its target) and time of every file; a directory has a mode alone."""

# Each program in a process of its own; the parent has imported nothing, so that no program helps another
RUNNER = """
import json, os, sys
results = {}
for name, code in json.load(sys.stdin).items():
    child = os.fork()
    if not child:
        null = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(null, number)
        status = 1
        try:
            exec(compile(code, '<string>', 'exec'), {'__name__': '__main__'})
            status = 0
        finally:
            os._exit(status)
    results[name] = os.waitpid(child, 0)[1] == 0
print(json.dumps(results))
"""


@dataclass(frozen=True)
class State:
    """One environment at one moment."""

    files: Listing
    works: dict[str, bool]
    """Whether each program passes."""
    unmet: frozenset[str]
    """Requirements of installed distributions that are not met."""
    damaged: frozenset[str]
    """Files that a distribution lists and that are not there."""
    versions: dict[str, tuple[str, ...]]
    """Every installed version of each distribution."""
    owners: dict[str, frozenset[str]]
    """Distributions that list each file."""
    complaints: frozenset[str] = frozenset()
    """What the tool that made the environment finds wrong in it, or would change."""


class Digests:
    """Digests of files, each read once: most are hard links to the same ones.

    What would be edited in place, without another size or time, shows in the base, which is read again at the end.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[int, int, int, int], str] = {}

    def of(self, path: str, info: os.stat_result) -> str:
        """The digest of a regular file."""
        key = (info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns)
        if key in self._known:
            return self._known[key]
        number = os.open(path, os.O_RDONLY)
        try:
            found = hashlib.blake2b(_content(number, info.st_size), digest_size=16).hexdigest()
        finally:
            os.close(number)
        self._known[key] = found
        return found


def _content(number: int, size: int) -> bytes:
    parts = []
    while size > 0 and (part := os.read(number, size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def observe(room: Room, programs: Mapping[str, str], digests: Digests) -> State:
    """Read files and metadata, and run every program."""
    done = room.smoke(RUNNER, text=json.dumps(dict(programs)))
    try:
        works: dict[str, bool] = json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        works = dict.fromkeys(programs, False)
    found = installed(room)
    owners = owned(room, found)
    return State(
        contents(room, digests),
        works,
        unmet(found),
        frozenset(path for path in owners if not os.path.lexists(room.prefix / path)),
        versions(found),
        owners,
        room.complaints(),
    )


def contents(room: Room, digests: Digests) -> Listing:
    """Every file, link and directory of the environment, and the bytes of the files beside it."""
    found = listing(room.prefix, digests)
    for path in room.beside:
        name = os.path.relpath(path, room.prefix)
        found[name] = (path.stat().st_mode, hashlib.sha256(path.read_bytes()).hexdigest(), 0)
    return found


def listing(root: Path, digests: Digests) -> Listing:
    """Every file, link and directory."""
    found: Listing = {}
    directories = [""]
    while directories:
        directory = directories.pop()
        with os.scandir(root / directory) as entries:
            for entry in entries:
                path = f"{directory}{entry.name}"
                info = entry.stat(follow_symlinks=False)
                if entry.is_symlink():
                    found[path] = (info.st_mode, str(Path(entry.path).readlink()), info.st_mtime_ns)
                elif entry.is_dir():
                    found[path] = (info.st_mode, "", 0)
                    directories.append(f"{path}/")
                else:
                    found[path] = (info.st_mode, digests.of(entry.path, info), info.st_mtime_ns)
    return found


def installed(room: Room) -> list[Distribution]:
    """Every metadata directory that has a name; those that an installer moved aside are none."""
    return [PathDistribution(path) for path in sorted(room.site.glob("*.dist-info")) if not path.name.startswith("~")]


def versions(found: Iterable[Distribution]) -> dict[str, tuple[str, ...]]:
    """Versions by name."""
    collected: dict[str, list[str]] = {}
    for item in found:
        collected.setdefault(name_of(item), []).append(item.version or "")
    return {name: tuple(sorted(several)) for name, several in collected.items()}


def name_of(item: Distribution) -> str:
    """The canonical name."""
    metadata: Any = item.metadata
    return canonicalize_name((metadata["Name"] if metadata is not None else None) or "?")


def unmet(found: list[Distribution]) -> frozenset[str]:
    """Requirements that no installed version meets, with the name of what states them."""
    present = versions(found)
    complaints = set()
    for item in found:
        stated_by = name_of(item)
        for line in item.requires or ():
            try:
                need = Requirement(line)
            except InvalidRequirement:
                continue
            if need.marker is not None and not need.marker.evaluate({"extra": ""}):
                continue
            there = present.get(canonicalize_name(need.name), ())
            if not any(need.specifier.contains(version, prereleases=True) for version in there):
                complaints.add(f"{stated_by} needs {need.name}{need.specifier}, there is {', '.join(there) or 'none'}")
    return frozenset(complaints)


def owned(room: Room, found: Iterable[Distribution]) -> dict[str, frozenset[str]]:
    """Which distributions list each file, by its path relative to the prefix."""
    collected: dict[str, set[str]] = {}
    site = room.site.relative_to(room.prefix)
    for item in found:
        name = name_of(item)
        for row in csv.reader((item.read_text("RECORD") or "").splitlines()):
            if row:
                path = os.path.normpath(site / row[0])
                collected.setdefault(path, set()).add(name)
    for path, name in room.listed().items():
        collected.setdefault(path, set()).add(canonicalize_name(name))
    return {path: frozenset(names) for path, names in collected.items()}


@dataclass(frozen=True)
class Named:
    """What the plans of a record name."""

    distributions: frozenset[str]
    paths: tuple[str, ...]


def named(document: Mapping[str, Any]) -> Named:
    """Distributions and files that the plans say they change."""
    distributions: set[str] = set()
    paths: list[str] = ["etc/envmedic", ".envmedic-tx"]
    for plan in (document.get("plan") or {}, *(document.get("extensions") or ())):
        for change in plan.get("changes") or ():
            distributions.update(canonicalize_name(name) for name in (change["name"], *change.get("distributions", ())))
        paths += [f"../{item['name']}" for item in (plan.get("project_edit") or {}).get("files") or ()]
        for step in plan.get("steps") or ():
            paths += step.get("leftovers") or ()
            paths += step.get("programs") or ()
            paths += [item["path"] for item in step.get("scripts") or ()]
            paths += CONDA if "conda" in step["type"] else ()
            paths += ACTIVATION if step["type"] in ("set_env", "unset_env") else ()
            paths += SETTINGS if step["type"] in ("relocate", "replace_base") else ()
    return Named(frozenset(distributions), tuple(paths))


CONDA = ("conda-meta/history", "CACHEDIR.TAG")
"""What installers of conda packages write whatever they install."""
ACTIVATION = ("bin/activate", "bin/activate.csh", "bin/activate.fish", "bin/Activate.ps1")
SETTINGS = (*ACTIVATION, "pyvenv.cfg", "bin/python", "bin/python3", "bin/python3.11")


def moved(before: State, after: State, plans: Named) -> list[str]:
    """Files that are other than before although nothing in the plans names them."""
    beside: dict[str, set[str]] = {}
    below: dict[str, set[str]] = {}
    for state in (before, after):
        for path, names in state.owners.items():
            parents = [str(parent) for parent in PurePosixPath(path).parents]
            beside.setdefault(parents[0], set()).update(names)
            for parent in parents:
                below.setdefault(parent, set()).update(names)
    scripted = set().union(*(state.owners.get(path, set()) for state in (before, after) for path in plans.paths))
    found = []
    for path in sorted(before.files.keys() | after.files.keys()):
        old, new = before.files.get(path), after.files.get(path)
        if old is not None and new is not None and old[:2] == new[:2]:
            continue
        if any(path == one or path.startswith(f"{one}/") or one.startswith(f"{path}/") for one in plans.paths):
            continue
        parent = str(PurePosixPath(path).parent).removesuffix("/__pycache__")
        owners = before.owners.get(path, frozenset()) | after.owners.get(path, frozenset())
        # The list of files of a distribution whose script is named has the size and hash of that script
        # (a copy of the metadata lists that of the original as its own)
        own = canonicalize_name(PurePosixPath(path).parent.name.partition("-")[0])
        if path.endswith(".dist-info/RECORD") and (owners | {own}) & scripted:
            continue
        # What no distribution lists, such as byte code, belongs to those that list its neighbours, or what is in it
        if not (owners or beside.get(parent, set()) | below.get(path, set())) & plans.distributions:
            found.append(path)
    return found


def harm(before: State, after: State, document: Mapping[str, Any], limits: Iterable[str]) -> list[str]:
    """What a repair has made worse or had no right to change, in sentences."""
    found = lost_programs(before, after)
    found += [f"unmet now: {line}" for line in sorted(after.unmet - before.unmet)]
    found += [f"missing now: {path}" for path in sorted(after.damaged - before.damaged)][:5]
    found += [f"moved, not named: {path}" for path in moved(before, after, named(document))][:5]
    return found + [f"pin not kept: {line}" for line in limits if kept(line, before) and not kept(line, after)]


def lost_programs(before: State, after: State) -> list[str]:
    """What worked, was asked for again, and works no more."""
    return [f"{name} worked" for name, works in after.works.items() if before.works.get(name) and not works]


def kept(limit: str, state: State) -> bool:
    """Whether the one installed version is within the limit."""
    need = Requirement(limit)
    there = state.versions.get(canonicalize_name(need.name), ())
    return len(there) == 1 and need.specifier.contains(there[0], prereleases=True)


PLACEHOLDER = re.compile(r"\{[a-z_.]+\}|\b(None|null)\b")


def ill_told(document: Mapping[str, Any]) -> bool:
    """Whether a refusal says nothing, or shows a placeholder."""
    failure = document.get("failure") or document
    words = " ".join(str(failure.get(key) or "") for key in ("summary", "cause", "next_step", "reason"))
    words += " ".join(str(item.get("summary")) for item in document.get("left") or ())
    return not words.strip() or PLACEHOLDER.search(words) is not None
