"""Reader and writer of ``conda-meta/history``: revisions of an environment and the specs in force.

Format and replay follow conda's own conda/history.py (24.7 and 26.7): each revision has a date, the command, the
added and removed packages, and comments with the specs. conda trusts the specs: its next command undoes a change that
contradicts them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
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
# `>=1,<2` is one spec: a comma before a relation does not divide two specs
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


class RevisionRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A change of an environment, from which `compose` writes a revision."""

    command: str
    when: datetime
    update: Sequence[str] = ()
    """Specs that the change asks for."""
    remove: Sequence[str] = ()
    """Names of packages whose specs the change takes back."""
    before: Sequence[CondaPackage] = ()
    """Packages that were installed before the change."""


def read(text: str) -> tuple[Revision, ...]:
    """Return the revisions in `text`, oldest first. Text before the first revision is ignored."""
    found: list[tuple[str, list[str]]] = []
    for line in map(str.strip, text.splitlines()):
        # The head of a revision is `==> 2024-05-01 12:00:00 <==`. Split, not matched: a regular expression with
        # two open ends backtracks quadratically over a damaged line of blanks.
        inside, mark, _ = line.removeprefix("==>").partition("<==")
        date = inside.strip() if mark and line.startswith("==>") else ""
        if date:
            found.append((date, []))
        elif line and found:
            found[-1][1].append(line)
    return tuple(_revision(date, lines) for date, lines in found)


def _revision(date: str, lines: Sequence[str]) -> Revision:
    comments = [line for line in lines if line.startswith("#")]
    content = [line for line in lines if not line.startswith("#")]
    # a revision has either the changes, with signs, or a full listing without signs
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
    """Return the specs of each kind (the last line of a kind counts) and the unreadable lines."""
    found: dict[str, tuple[str, ...]] = {}
    unreadable: list[str] = []
    for line in comments:
        match = _SPECS.match(line)
        if match is None:
            continue
        try:
            # a spec that ends with @ is a track_features mark of old conda, which conda skips too
            stated = tuple(item for item in _listed(match[2] or "") if item and not item.endswith("@"))
        except ValueError:
            unreadable.append(line)
            continue
        # an empty list does not override an earlier line, as in conda's replay
        if stated and match[1] in _KINDS:
            found[_KINDS[match[1]]] = stated
    return found, unreadable


def _listed(text: str) -> list[str]:
    """Parse a list in Python syntax or, before conda 4.5, separated by commas. Raises ValueError."""
    if text.startswith("["):
        # conda evaluates the text as well; anybody can write this file, so only literals are accepted
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
    """Replay all revisions: the specs that conda considers requested, by package name.

    conda forgets specs of packages whose names are not in `installed`; None keeps them.
    """
    found: dict[str, str] = {}
    for item in revisions:
        if not item.command:
            continue
        # conda's order within a revision: removals first, and neutered specs override the requested ones
        for spec in item.remove:
            found.pop(_name(spec), None)
        found |= {_name(spec): spec for spec in item.update}
        found |= {_name(spec): spec for spec in item.neutered}
    if installed is None:
        return found
    there = set(installed)
    return {name: spec for name, spec in found.items() if name in there}


def _name(spec: str) -> str:
    """Return the name under which a spec is stored; an unreadable spec keeps its own text and never matches."""
    try:
        return specs.name_of(spec)
    except ValueError:
        return spec


def state(revisions: Iterable[Revision]) -> frozenset[str]:
    """Return the installed packages according to the history alone, in its spelling.

    As in conda, a revision without additions and removals lists all packages, which may be none.
    """
    found: set[str] = set()
    for item in revisions:
        changes = item.removed or item.added
        found = found.difference(item.removed).union(item.added) if changes else set(item.listed)
    return frozenset(found)


def stale(
    in_force: Mapping[str, str], packages: Iterable[CondaPackage], matches: MatchesSpec
) -> dict[str, CondaPackage]:
    """Return the specs that the installed package of that name no longer matches, each name with that package."""
    installed = {item.name: item for item in packages}
    return {
        name: installed[name]
        for name, spec in in_force.items()
        if name in installed and _differs(spec, installed[name], matches)
    }


def _differs(spec: str, package: CondaPackage, matches: MatchesSpec) -> bool:
    """Whether a package does not match a spec; true for an unreadable spec."""
    try:
        return not matches(spec, package)
    except ValueError:
        return True


def compose(text: str, packages: Sequence[CondaPackage], request: RevisionRequest, matches: MatchesSpec) -> str:
    """Return the revision to append to the history `text`; empty when nothing changes.

    `packages` are those installed after the change. An older spec that an installed package no longer matches is
    overridden by the installed version, and the specs of removed packages are taken back.
    """
    revisions = read(text)
    in_force = specs_in_force(revisions)
    wanted = _specs_after(in_force, packages, request, matches)
    # a package that only a removed one needed stays, so it needs a spec: wheels may use it
    wanted |= kept_packages.orphaned_specs(in_force, request.before, wanted, packages)
    names = {item.name for item in packages}
    gone = [*dict.fromkeys([*request.remove, *(name for name in in_force if name not in names)])]
    added, removed = _difference(state(revisions), packages)
    taken_back = [name for name in gone if name in in_force or name in request.remove]
    new = [spec for name, spec in wanted.items() if in_force.get(name) != spec]
    if not (added or removed or taken_back or new):
        return ""
    # a line break in the command would end the comment and be read as a package
    lines = [f"==> {request.when:%Y-%m-%d %H:%M:%S} <==", f"# cmd: {' '.join(request.command.split())}"]
    # conda refuses to work on an environment that a newer conda changed, so the highest version is repeated
    versions = {item.conda_version for item in revisions if item.conda_version}
    by_number = sorted(versions, key=lambda version: [int(part) for part in re.findall(r"\d{1,9}", version)])
    lines += [f"# conda version: {version}" for version in by_number[-1:]]
    lines += [*(f"-{item}" for item in sorted(removed)), *(f"+{item}" for item in sorted(added))]
    lines += [f"# remove specs: {taken_back}"] if taken_back else []
    lines += [f"# update specs: {new}"] if new else []
    begins = "" if not text or text.endswith("\n") else "\n"
    return begins + "\n".join(lines) + "\n"


def _specs_after(
    in_force: Mapping[str, str], packages: Sequence[CondaPackage], request: RevisionRequest, matches: MatchesSpec
) -> dict[str, str]:
    """Return the specs that must be in force after the change, by name."""
    names = {item.name for item in packages}
    removed = {name.lower() for name in request.remove}
    # Without any spec in force, conda keeps every package. With the first spec (ours, or the user's next one) its
    # next removal would drop all packages that no spec needs, so each package becomes a spec: as its record says it
    # was requested, else by name.
    held = dict(in_force)
    if not held:
        held = {item.name: item.name for item in packages}
        held |= {_name(spec): spec for item in packages for spec in item.requested}
    base = {name: spec for name, spec in held.items() if name in names and name not in removed}
    # conda's next solve would return to the version that a stale spec names
    renewed = {name: f"{item.name}={item.version}" for name, item in stale(base, packages, matches).items()}
    return base | renewed | {_name(spec): spec for spec in request.update}


def _difference(before: frozenset[str], packages: Sequence[CondaPackage]) -> tuple[list[str], list[str]]:
    """Return the added and the removed packages, in the history's spelling."""
    # compared without the channel: a mirror spells the same channel in another way, which is no change
    stems = {f"{item.name}-{item.version}-{item.build}": item for item in packages}
    known = {item.rpartition("::")[2]: item for item in before}
    added = [dist_string(item) for stem, item in stems.items() if stem not in known]
    return added, [item for stem, item in known.items() if stem not in stems]
