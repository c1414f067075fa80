"""``conda-meta/history``: the revisions of an environment, what its user asked for, and a further revision.

Format and replay as in conda's own conda/history.py (24.7 and 26.7): each revision has a date, the command, what came
and went, and comments with the specs. conda trusts the specs: what contradicts them is undone by its next command.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime

import msgspec

from envmedic.conda_meta import kept_packages, specs
from envmedic.conda_meta.packages import dist_string
from envmedic.model.conda import CondaPackage
from envmedic.model.ports import MatchesSpec

PATH = "conda-meta/history"
_COMMAND = re.compile(r"#\s*cmd:\s*(.+)")
_CONDA = re.compile(r"#\s*conda version:\s*(.+)")
_SPECS = re.compile(r"#\s*(\w+)\s*specs:\s*(.+)?")
_KINDS = {
    "update": "update", "install": "update", "create": "update",
    "remove": "remove", "uninstall": "remove", "neutered": "neutered",
}  # fmt: skip
_RELATION = re.compile(r"\s*(?:=|==|!=|<=|>=|<|>|~=)(?![=<>!~])\S+")


class Revision(msgspec.Struct, frozen=True, kw_only=True):
    """One change of an environment."""

    date: str
    """As written: ``2024-05-01 12:00:00``."""
    command: tuple[str, ...] = ()
    """The command line; without one conda passes over the specs of a revision."""
    conda_version: str | None = None
    added: tuple[str, ...] = ()
    """Packages as conda's history names them: ``conda-forge/linux-64::numpy-1.26.4-py311h64a7726_0``."""
    removed: tuple[str, ...] = ()
    listed: tuple[str, ...] = ()
    """All packages, where a revision lists them instead of what changed."""
    update: tuple[str, ...] = ()
    """Specs that were asked for."""
    remove: tuple[str, ...] = ()
    """Specs that were taken back."""
    neutered: tuple[str, ...] = ()
    """Specs in the weaker form in which conda kept them."""
    unreadable: tuple[str, ...] = ()
    """Lines of specs that cannot be read; conda itself stops at them."""


def read(text: str) -> tuple[Revision, ...]:
    """The revisions that `text` holds, the oldest first. What stands before the first one counts for nothing."""
    found: list[tuple[str, list[str]]] = []
    for line in map(str.strip, text.splitlines()):
        date = _date(line)
        if date:
            found.append((date, []))
        elif line and found:
            found[-1][1].append(line)
    return tuple(_revision(date, lines) for date, lines in found)


def _date(line: str) -> str:
    """What the head of a revision says: ``==> 2024-05-01 12:00:00 <==``; empty for any other line."""
    inside, mark, _ = line.removeprefix("==>").partition("<==")
    return inside.strip() if mark and line.startswith("==>") else ""


def _revision(date: str, lines: Sequence[str]) -> Revision:
    comments = [line for line in lines if line.startswith("#")]
    content = [line for line in lines if not line.startswith("#")]
    changes = any(line[0] in "+-" for line in content)
    read_specs, unreadable = _specs(comments)
    return Revision(
        date=date,
        command=tuple((_last(_COMMAND, comments) or "").split()),
        conda_version=_last(_CONDA, comments),
        added=tuple(line[1:] for line in content if line[0] == "+"),
        removed=tuple(line[1:] for line in content if line[0] == "-"),
        listed=() if changes else tuple(content),
        update=read_specs.get("update", ()),
        remove=read_specs.get("remove", ()),
        neutered=read_specs.get("neutered", ()),
        unreadable=tuple(unreadable),
    )


def _last(pattern: re.Pattern[str], lines: Iterable[str]) -> str | None:
    found = [match[1] for line in lines if (match := pattern.match(line))]
    return found[-1] if found else None


def _specs(comments: Iterable[str]) -> tuple[dict[str, tuple[str, ...]], list[str]]:
    """The specs of each kind, of which the last line of a revision counts, and lines that cannot be read."""
    found: dict[str, tuple[str, ...]] = {}
    unreadable: list[str] = []
    for line in comments:
        match = _SPECS.match(line)
        if match is None:
            continue
        try:
            stated = tuple(item for item in _listed(match[2] or "") if item and not item.endswith("@"))
        except ValueError:
            unreadable.append(line)
            continue
        if stated and match[1] in _KINDS:
            found[_KINDS[match[1]]] = stated
    return found, unreadable


def _listed(text: str) -> list[str]:
    """A list as Python writes it; or, before conda 4.5, divided by commas. Raises ValueError."""
    if text.startswith("["):
        try:
            value: object = ast.literal_eval(text)
        except (SyntaxError, TypeError, MemoryError, RecursionError) as error:
            raise ValueError(text) from error
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise ValueError(text)
        return value
    if "[" in text:
        raise ValueError(text)
    found: list[list[str]] = []
    for part in text.split(","):
        if found and _RELATION.match(part):
            found[-1].append(part)
        else:
            found.append([part])
    return [",".join(parts) for parts in found]


def specs_in_force(revisions: Iterable[Revision], installed: Iterable[str] | None = None) -> dict[str, str]:
    """What conda takes for asked for, by name of package: the specs of all revisions, replayed.

    conda forgets specs of packages that are not `installed` (names); None keeps them.
    """
    found: dict[str, str] = {}
    for item in revisions:
        if not item.command:
            continue
        for spec in item.remove:
            found.pop(_name(spec), None)
        found |= {_name(spec): spec for spec in item.update}
        found |= {_name(spec): spec for spec in item.neutered}
    if installed is None:
        return found
    there = set(installed)
    return {name: spec for name, spec in found.items() if name in there}


def _name(spec: str) -> str:
    """The name that a spec is kept under; one that cannot be read is kept under its own text, and so is stale."""
    try:
        return specs.name_of(spec)
    except ValueError:
        return spec


def state(revisions: Iterable[Revision]) -> frozenset[str]:
    """The packages that are installed by the history alone, in its own words.

    As in conda, a revision in which nothing came or went lists all packages: none.
    """
    found: set[str] = set()
    for item in revisions:
        changes = item.removed or item.added
        found = found.difference(item.removed).union(item.added) if changes else set(item.listed)
    return frozenset(found)


def stale(
    in_force: Mapping[str, str], packages: Iterable[CondaPackage], matches: MatchesSpec
) -> dict[str, CondaPackage]:
    """Names of specs that the installed package of that name does not match, with that package."""
    installed = {item.name: item for item in packages}
    return {
        name: installed[name]
        for name, spec in in_force.items()
        if name in installed and _differs(spec, installed[name], matches)
    }


def _differs(spec: str, package: CondaPackage, matches: MatchesSpec) -> bool:
    """A spec that cannot be read counts as one that no longer fits."""
    try:
        return not matches(spec, package)
    except ValueError:
        return True


def compose(
    text: str,
    packages: Sequence[CondaPackage],
    *,
    command: str,
    when: datetime,
    matches: MatchesSpec,
    update: Sequence[str] = (),
    remove: Sequence[str] = (),
    before: Sequence[CondaPackage] = (),
    dist: Callable[[CondaPackage], str] = dist_string,
) -> str:
    """The revision to append to the history `text` once `packages` are what is installed; empty when nothing changes.

    `update` are specs asked for, `remove` names taken back. Every older spec that an installed package no longer
    answers to is overridden by its version, and those of packages that are gone are taken back: conda would undo the
    change otherwise. Where no spec was in force, conda holds to every package; with the first spec, be it its user's
    next one, it would drop at its next removal all that no spec needs. So each becomes a spec: as its record says that
    it was requested, else by name. And so does each that only what went had needed, of those that were there `before`.
    """
    revisions = read(text)
    in_force = specs_in_force(revisions)
    wanted = _wanted(in_force, packages, update, {name.lower() for name in remove}, matches)
    wanted |= kept_packages.set_adrift(in_force, before, wanted, packages)
    names = {item.name for item in packages}
    gone = [*dict.fromkeys([*remove, *(name for name in in_force if name not in names)])]
    added, removed = _difference(state(revisions), packages, dist)
    taken_back = [name for name in gone if name in in_force or name in remove]
    new = [spec for name, spec in wanted.items() if in_force.get(name) != spec]
    if not (added or removed or taken_back or new):
        return ""
    lines = [f"==> {when:%Y-%m-%d %H:%M:%S} <==", f"# cmd: {_one_line(command)}"]
    lines += [f"# conda version: {version}" for version in _conda_versions(revisions)[-1:]]
    lines += [*(f"-{item}" for item in sorted(removed)), *(f"+{item}" for item in sorted(added))]
    lines += [f"# remove specs: {taken_back}"] if taken_back else []
    lines += [f"# update specs: {new}"] if new else []
    begins = "" if not text or text.endswith("\n") else "\n"
    return begins + "\n".join(lines) + "\n"


def _wanted(
    in_force: Mapping[str, str],
    packages: Sequence[CondaPackage],
    update: Iterable[str],
    remove: set[str],
    matches: MatchesSpec,
) -> dict[str, str]:
    """The specs that must be in force afterwards."""
    names = {item.name for item in packages}
    asked = {_name(spec): spec for spec in update}
    held = in_force or _requested(packages)
    base = {name: spec for name, spec in held.items() if name in names and name not in remove}
    renewed = {name: f"{item.name}={item.version}" for name, item in stale(base, packages, matches).items()}
    return base | renewed | asked


def _requested(packages: Sequence[CondaPackage]) -> dict[str, str]:
    return {item.name: item.name for item in packages} | {
        _name(spec): spec for item in packages for spec in item.requested
    }


def _difference(
    before: frozenset[str], packages: Sequence[CondaPackage], dist: Callable[[CondaPackage], str]
) -> tuple[list[str], list[str]]:
    """What came and went; a package that only its channel's spelling tells from before did neither."""
    stems = {f"{item.name}-{item.version}-{item.build}": item for item in packages}
    known = {item.rpartition("::")[2]: item for item in before}
    added = [dist(item) for stem, item in stems.items() if stem not in known]
    return added, [item for stem, item in known.items() if stem not in stems]


def _one_line(command: str) -> str:
    return " ".join(command.split())


def _conda_versions(revisions: Iterable[Revision]) -> list[str]:
    """The versions of conda that changed the environment, the newest last: an older conda must not take it for its own."""
    found = {item.conda_version for item in revisions if item.conda_version}
    return sorted(found, key=lambda text: [int(part) for part in re.findall(r"\d{1,9}", text)])
