"""Facts about installed files: damage, doubled and lost distributions, overwritten files, shadows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from envmedic.diagnosis.areas.requested_versions import Dependants, parse
from envmedic.diagnosis.derived import Derived
from envmedic.model.facts import Distribution, DistributionFiles, Environment, Facts, FileConflict, Leftover, Shadow

_RESTORABLE = frozenset({"index", "archive", "unknown"})
"""Origins of which an index can give the same version again."""
_SHOWN = 3


def derive(facts: Facts) -> Derived:
    """The facts of `model.kinds_files`; none where no environment was observed."""
    environment = facts.environment
    if environment is None:
        return {}
    dependants = Dependants(environment, facts.host)
    return {
        **_damage(environment),
        **_unrecorded(environment),
        **_duplicates(environment, dependants),
        "leftovers.lost": _lost(environment, dependants),
        **_clobbered(environment, dependants),
        **_shadows(environment.shadows),
    }


def _own(environment: Environment) -> list[Distribution]:
    """Distributions inside the prefix that are there once: the others have facts of their own."""
    doubled = set(environment.duplicates)
    return [item for item in environment.distributions if not item.outside_prefix and item.name not in doubled]


def _restorable(item: Distribution) -> bool:
    """Whether an index can give that version again."""
    return item.owner != "conda" and item.origin.kind in _RESTORABLE and parse(item.version) is not None


def _pin(item: Distribution) -> str:
    return f"{item.name}=={item.version}"


def _damage(environment: Environment) -> Derived:
    if environment.files is None:
        return {}
    by_path = {item.metadata_path: item for item in _own(environment)}
    reports = [item for item in environment.files if item.distribution not in environment.duplicates]
    damaged = [item for item in reports if item.missing_count or item.cut_off]
    known = [by_path[item.metadata_path] for item in damaged if item.metadata_path in by_path]
    missing = [path for item in damaged for path in item.missing]
    return {
        "files.damaged": tuple(_pin(item) for item in known if _restorable(item)),
        "files.beyond-index": tuple(item.name for item in known if not _restorable(item)),
        "files.problems": tuple(_problem(item) for item in damaged),
        "files.missing-count": sum(item.missing_count for item in damaged),
        "files.first-missing": missing[0] if missing else None,
        "files.cut-off": tuple(path for item in damaged for path in item.cut_off),
        "files.changed": tuple(path for item in reports for path in item.changed),
    }


def _problem(report: DistributionFiles) -> str:
    parts = []
    if report.missing_count:
        such = f", such as {report.missing[0]}" if report.missing_count > 1 else f": {report.missing[0]}"
        parts.append(f"{report.missing_count} of {report.recorded} files missing{such}")
    if report.cut_off:
        parts.append(f"cut off: {', '.join(report.cut_off[:_SHOWN])}")
    return f"{report.distribution} {report.version}: {'; '.join(parts)}"


def _unrecorded(environment: Environment) -> Derived:
    """Those whose RECORD was lost: pip and uv always write one."""
    gone = [
        item
        for item in _own(environment)
        if item.owner in {"pip", "uv"}
        and not item.has_record
        and item.metadata_path.endswith(".dist-info")
        and _restorable(item)
    ]
    return {"files.unrecorded": tuple(map(_pin, gone))}


def _duplicates(environment: Environment, dependants: Dependants) -> Derived:
    pins: dict[str, str] = {}
    reasons: list[str] = []
    for name in environment.duplicates:
        copies = [item for item in environment.distributions if item.name == name and not item.outside_prefix]
        chosen, why = _right_copy(environment, copies, dependants)
        versions = " and ".join(f"{item.version} ({item.metadata_path})" for item in copies)
        reasons.append(f"{name}: {versions}; {chosen.version} {why}")
        if _restorable(chosen):
            pins[name] = _pin(chosen)
    return {
        "duplicates.names": tuple(pins),
        "duplicates.pins": tuple(pins.values()),
        "duplicates.reasons": tuple(reasons),
    }


def _right_copy(
    environment: Environment, copies: Sequence[Distribution], dependants: Dependants
) -> tuple[Distribution, str]:
    """The copy to keep: what others ask for, then what the files are of, then the newest."""
    agreement = {item: _agreement(environment, item) for item in copies}
    accepted = {item: dependants.accepting(item.name, item.version) for item in copies}
    chosen = max(copies, key=lambda item: (accepted[item], _restorable(item), agreement[item], _order(item.version)))
    if len(set(accepted.values())) > 1:
        return chosen, "is what other distributions ask for"
    if len(set(agreement.values())) > 1:
        return chosen, "is the one whose files are there"
    return chosen, "is the newest"


def _order(version: str) -> tuple[bool, object]:
    parsed = parse(version)
    return (parsed is not None, parsed)


def _agreement(environment: Environment, item: Distribution) -> float:
    """Which part of its files lies there; torch's own version file tells, where there is one."""
    if item.name == "torch" and environment.torch is not None and environment.torch.version.startswith(item.public):
        return 1.0
    report = next((it for it in environment.files or () if it.metadata_path == item.metadata_path), None)
    return report.matching / report.recorded if report is not None and report.recorded else 0.0


def _lost(environment: Environment, dependants: Dependants) -> tuple[str, ...]:
    """Requirements that bring back what only leftovers remain of, where something still wants it."""
    installed = {item.name for item in environment.distributions if not item.outside_prefix}
    by_name: dict[str, list[Leftover]] = {}
    for item in environment.leftovers:
        if item.name is not None and item.name not in installed:
            by_name.setdefault(item.name, []).append(item)
    return tuple(
        _lost_version(name, items, dependants)
        for name, items in by_name.items()
        if any(item.code for item in items) or dependants.of(name)
    )


def _lost_version(name: str, items: Iterable[Leftover], dependants: Dependants) -> str:
    """The version that others accept, then the one whose code lies there; without any, what others ask for."""
    stated = [item for item in items if item.version is not None and parse(item.version) is not None]
    if not stated:
        return dependants.asked(name)
    best = max(stated, key=lambda item: (dependants.accepting(name, str(item.version)), item.code))
    fits = dependants.accepting(name, str(best.version)) == len(dependants.of(name))
    return f"{name}=={best.version}" if fits else dependants.asked(name)


def _clobbered(environment: Environment, dependants: Dependants) -> Derived:
    pins: dict[str, None] = {}
    gone: dict[str, None] = {}
    reasons: list[str] = []
    by_name = {item.name: item for item in _own(environment)}
    for conflict in environment.conflicts:
        pair = [by_name[name] for name in conflict.distributions if name in by_name and not conflict.conda]
        if len(pair) == len(conflict.distributions) and all(map(_restorable, pair)):
            kept = _kept(conflict, pair, dependants)
            if kept is not None:
                pins[_pin(kept)] = None
                gone |= dict.fromkeys(conflict.distributions)
                reasons.append(_reason(conflict, kept))
    return {
        "clobbered.pins": tuple(pins),
        "clobbered.distributions": tuple(gone),
        "clobbered.reasons": tuple(reasons),
    }


def _kept(conflict: FileConflict, pair: Sequence[Distribution], dependants: Dependants) -> Distribution | None:
    """The one of two to keep; None where both are required, so that neither may go."""
    names = {item.name for item in pair}
    required = [item for item in pair if dependants.of(item.name, apart_from=names)]
    if len(required) == len(pair):
        return None
    if required:
        return required[0]
    first, second = conflict.content_of
    return pair[0] if first >= second else pair[1]


def _reason(conflict: FileConflict, kept: Distribution) -> str:
    first, second = conflict.distributions
    of_first, of_second = conflict.content_of
    whose = f"{of_first} of them hold what {first} brings and {of_second} what {second} does"
    files = f"{conflict.count} files, such as {conflict.paths[0]}"
    return f"{first} and {second} both bring {files}; {whose}; {kept.name} is to stay"


def _shadows(shadows: Iterable[Shadow]) -> Derived:
    found = list(shadows)
    return {
        "shadow.user-site": tuple(_shadow(item) for item in found if item.kind == "user-site"),
        "shadow.pythonpath": tuple(_shadow(item) for item in found if item.kind == "PYTHONPATH"),
    }


def _shadow(item: Shadow) -> str:
    version = f" {item.version}" if item.version else ""
    return f"{item.name}{version} in {item.where} hides {item.name} {item.hidden_version}"
