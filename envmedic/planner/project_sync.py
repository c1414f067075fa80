"""The project's own tool beside a repair: what its next sync would undo, and where environment, lock and manifest disagree.

Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from envmedic.model.facts import Environment
from envmedic.model.pins import NextSync, Project, UserPin
from envmedic.planner.changes.requirement_checks import meets
from envmedic.planner.user_pins import binding

_KEEP: Mapping[str, tuple[str, ...]] = {
    "uv": ("uv", "add"),
    "poetry": ("poetry", "add"),
    "pdm": ("pdm", "add"),
    "pixi": ("pixi", "add"),
    "conda-workspaces": ("conda", "workspace", "add"),
}


def next_sync(
    environment: Environment, values: Mapping[str, str], after: Mapping[str, str | None], asked: Iterable[str] = ()
) -> NextSync | None:
    """Return what the project's tool does to the environment after a plan; None where nothing is known of it.

    `after` gives the new version of each changed distribution, None for a removed one; `asked` are the requirements
    that the plan was made for; `values` are the environment's marker variables.
    """
    project = environment.project
    if project is None or not project.sync or not after:
        return None
    pins = binding(environment.pins, environment, values)
    locked = _locked(project, pins)
    stale = {name: text for name, text in _unlocked(project, pins, locked).items() if name in after}
    undone = tuple(_undone(project, after, locked, stale)) if locked else _unread(project)
    # the tool takes an installed version for granted, damaged or not
    moved = all(name in locked and _version(environment, name) != after[name] for name in after)
    if not undone and not moved:
        return None
    wanted: dict[str, str] = {canonicalize_name(Requirement(text).name): _short(text) for text in asked}
    # what the manifest says already stays as it is there
    wanted |= {name: text for name, text in stale.items() if meets(Requirement(text), after[name] or "0")}
    changed = [name for name in after if after[name] is not None and not _agrees(locked.get(name), after[name])]
    words = [wanted.get(name) or f"{name}=={(after[name] or '').partition('+')[0]}" for name in sorted(changed)]
    keeps = (*_KEEP[project.tool], *words) if undone and words and project.tool in _KEEP else ()
    return NextSync(
        command=project.sync, folder=project.folder, undoes=undone, known=bool(locked) and not stale, keeps=keeps
    )


def disagreements(environment: Environment, values: Mapping[str, str]) -> tuple[str, ...]:
    """Return a sentence for each place where environment, lock and manifest of the project disagree."""
    project = environment.project
    if project is None:
        return ()
    pins = binding(environment.pins, environment, values)
    locked = _locked(project, pins)
    return tuple(
        dict.fromkeys(
            (*_drift(environment, pins), *(text for name in locked for text in _outdated(locked[name], pins)))
        )
    )


def _drift(environment: Environment, pins: Iterable[UserPin]) -> Iterator[str]:
    for pin in pins:
        requirement = Requirement(pin.requirement)
        installed = environment.distribution(canonicalize_name(requirement.name))
        if installed is not None and not meets(requirement, installed.version):
            yield f"{installed.name} {installed.version} is installed, and {pin.source} says {pin.requirement}"
        elif installed is None and pin.kind == "requirement":
            yield f"{requirement.name} is not installed, and {pin.source} asks for {pin.requirement}"


def _outdated(locked: Sequence[UserPin], pins: Iterable[UserPin]) -> Iterator[str]:
    """Statements of the user that no locked version of that name meets."""
    name = Requirement(locked[0].requirement).name
    versions = [next(iter(Requirement(item.requirement).specifier)).version for item in locked]
    for pin in pins:
        requirement = Requirement(pin.requirement)
        if pin.kind in {"lock", "variant"} or canonicalize_name(requirement.name) != canonicalize_name(name):
            continue
        if not any(meets(requirement, version) for version in versions):
            yield f"{locked[0].source} locks {name} {versions[0]}, and {pin.source} says {pin.requirement}"


def _locked(project: Project, pins: Iterable[UserPin]) -> dict[str, list[UserPin]]:
    """What the project's own lock states, by normalised name."""
    found: dict[str, list[UserPin]] = {}
    for pin in pins:
        if pin.kind == "lock" and pin.source.startswith(f"{project.folder}/{project.lock}:"):
            found.setdefault(canonicalize_name(Requirement(pin.requirement).name), []).append(pin)
    return found


def _unlocked(project: Project, pins: Iterable[UserPin], locked: Mapping[str, object]) -> dict[str, str]:
    """What the manifest asks for and the lock, which was made before, does not have, by normalised name."""
    where = f"{project.folder}/{project.manifest}:"
    asked = (pin.requirement for pin in pins if pin.kind == "requirement" and pin.source.startswith(where))
    named = ((canonicalize_name(Requirement(text).name), text) for text in asked)
    return {name: text for name, text in named if name not in locked}


def _short(text: str) -> str:
    """A requirement without the bounds that another of its bounds implies."""
    requirement = Requirement(text)
    groups = (({">=", ">"}, max), ({"<=", "<"}, min))
    kept = [item for item in requirement.specifier if not any(item.operator in operators for operators, _ in groups)]
    for operators, tightest in groups:
        bounds = [item for item in requirement.specifier if item.operator in operators]
        # of equal versions the bound that excludes it
        kept += (
            [tightest(bounds, key=lambda item: (Version(item.version), item.operator in {">", "<="}))] if bounds else []
        )
    requirement.specifier = SpecifierSet(",".join(map(str, kept)))
    return str(requirement)


def _agrees(pins: Sequence[UserPin] | None, version: str | None) -> bool:
    return (
        bool(pins) and version is not None and any(meets(Requirement(pin.requirement), version) for pin in pins or ())
    )


def _version(environment: Environment, name: str) -> str | None:
    installed = environment.distribution(name)
    return installed.version if installed is not None else None


def _undone(
    project: Project, after: Mapping[str, str | None], locked: Mapping[str, list[UserPin]], stale: Collection[str]
) -> Iterator[str]:
    for name in sorted(after):
        version, pins = after[name], locked.get(name)
        if _agrees(pins, version):
            continue
        if pins:
            was = next(iter(Requirement(pins[0].requirement).specifier)).version
            yield f"{name} {version or 'removed'} -> {was} ({pins[0].source})"
        elif version is not None and project.exact:
            yield f"{name} {version} -> removed (not in {project.folder}/{project.lock})"
        elif version is not None and name in stale:
            yield f"{project.folder}/{project.lock} does not have {name}, which {project.manifest} asks for"


def _unread(project: Project) -> tuple[str, ...]:
    """What can be said of a lock or manifest whose versions are not known here."""
    where = project.manifest
    missing = f"there is no lock, so it chooses versions by {project.folder}/{where}"
    return (f"it follows {project.folder}/{project.lock}" if project.lock else missing,)
