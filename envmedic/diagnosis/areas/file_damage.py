"""Facts on installed files: damage, duplicates, lost records, overwritten files, shadows."""

from __future__ import annotations

from collections.abc import Iterable

from envmedic.analysis.packages.dependents import Dependants
from envmedic.analysis.packages.doubled_files import Duplicate, duplicates, overwritings, own, pin, restorable
from envmedic.analysis.packages.foreign_wheels import foreign
from envmedic.diagnosis.derived import Derived
from envmedic.model.facts import Distribution, DistributionFiles, Environment, Facts, FileConflict, Shadow

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
        **_foreign(environment),
        "duplicates.reasons": tuple(map(_doubled, duplicates(environment, dependants))),
        "clobbered.reasons": tuple(
            _reason(item.conflict, item.right) for item in overwritings(environment, dependants)
        ),
        **_shadows(environment.shadows),
    }


def _damage(environment: Environment) -> Derived:
    if environment.files is None:
        return {}
    by_path = {item.metadata_path: item for item in own(environment)}
    # of a duplicate, files of the other copy would count as damage: duplicates are a fault of their own
    reports = [item for item in environment.files if item.distribution not in environment.duplicates]
    damaged = [item for item in reports if item.missing_count or item.cut_off]
    known = [by_path[item.metadata_path] for item in damaged if item.metadata_path in by_path]
    missing = [path for item in damaged for path in item.missing]
    return {
        "files.damaged": tuple(pin(item) for item in known if restorable(item)),
        # what conda installed, conda restores, also where its record is gone
        "files.beyond-index": tuple(item.name for item in known if not restorable(item) and item.owner != "conda"),
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
    """Distributions without a RECORD, which pip and uv always write."""
    gone = [
        item
        for item in own(environment)
        if item.owner in {"pip", "uv"}
        and not item.has_record
        and item.metadata_path.endswith(".dist-info")  # an egg-info never has a RECORD
        and restorable(item)
    ]
    return {"files.unrecorded": tuple(map(pin, gone))}


def _foreign(environment: Environment) -> Derived:
    found = [(item, why) for item, why in foreign(environment) if item.name not in environment.duplicates]
    return {
        "files.foreign": tuple(pin(item) for item, _ in found if restorable(item)),
        "files.foreign-tags": tuple(f"{item.name} {item.version}: {why}" for item, why in found),
    }


def _doubled(item: Duplicate) -> str:
    versions = " and ".join(f"{copy.version} ({copy.metadata_path})" for copy in item.copies)
    return f"{item.right.name}: {versions}; {item.right.version} {item.why}"


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
