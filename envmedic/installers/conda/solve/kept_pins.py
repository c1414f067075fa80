"""The user's pins of conda packages: those in the way of a change, and what would have to stand in their place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from envmedic.conda_meta import specs
from envmedic.errors import NoSolution, PinnedVersions
from envmedic.installers.conda.configuration import spec_matching
from envmedic.model.conda import CondaArtifact, CondaChange, CondaPackage
from envmedic.model.pins import LiftedPin

_BOUND = re.compile(r"([<>])=?[^|]*")
_SERIES = re.compile(r"=([0-9][^,|*\s=]*)|([0-9][^,|*\s=]*)\.\*")
"""A series of versions: ``=1.26``, ``1.26.*``."""


def blamed(refusal: NoSolution, places: Mapping[str, str]) -> NoSolution:
    """Return `refusal` with the pins that the solver's explanation states, and where each stands.

    `places` has the place of every pin.
    """
    stated = [line.replace(" ", "") for line in refusal.details if "constraint" in line]
    found = [pin for pin in places if any(spec_matching.canonical(pin).replace(" ", "") in line for line in stated)]
    if not found:
        return refusal
    told = "; ".join(f"{places[pin]} pins {pin}" for pin in found)
    pins = tuple((places[pin], pin) for pin in found)
    return PinnedVersions(refusal.summary, cause=f"{told}; {refusal.cause}", pins=pins, details=refusal.details)


def require(change: CondaChange, places: Mapping[str, str]) -> None:
    """Raise PinnedVersions for a change that takes a pinned package out of conda: a solver only keeps pins on what stays."""
    gone = {item.name for item in change.remove} - {item.name for item in change.install}
    found = [pin for pin in places if specs.name_of(pin) in gone]
    if found:
        told = tuple(f"{places[pin]} pins {pin}" for pin in found)
        raise PinnedVersions(
            "The repair would take a package out of conda that you have pinned",
            cause=told[0],
            pins=tuple((places[pin], pin) for pin in found),
            details=told,
        )


def unkept(pins: Iterable[tuple[str, str]], change: CondaChange) -> Iterator[LiftedPin]:
    """Yield what a change does not keep of `pins`, each with its place before it."""
    new = {item.name: item for item in change.install}
    gone = {item.name for item in change.remove}
    for source, pin in pins:
        name = specs.name_of(pin)
        package = _package(new[name]) if name in new else None
        if package is not None and not _keeps(pin, package):
            yield LiftedPin(pin=pin, source=source, kind="conda", instead=_agreeing(pin, package))
        elif package is None and name in gone:
            yield LiftedPin(pin=pin, source=source, kind="conda")


def _package(artifact: CondaArtifact) -> CondaPackage:
    return CondaPackage(
        name=artifact.name,
        version=artifact.version,
        build=artifact.build,
        build_number=int(artifact.metadata.get("build_number") or 0),
        channel=artifact.channel,
        subdir=artifact.subdir,
        filename=artifact.filename,
        url=artifact.url,
        md5=artifact.md5,
        sha256=artifact.sha256,
    )


def _keeps(pin: str, package: CondaPackage) -> bool:
    try:
        return spec_matching.matches(pin, package)
    except ValueError:  # a form that only the solver reads
        return False


def _agreeing(pin: str, package: CondaPackage) -> str:
    """A pin that `package` keeps, as near to `pin` as can be: each broken bound at its version, a series as long as before."""
    name, limit = re.fullmatch(r"([^\s=<>!~\[]+)\s*(.*)", specs.plain(pin), re.DOTALL).groups()  # type: ignore[union-attr]
    nearest = f"{name} {','.join(_clause(word, name, package) for word in limit.split(','))}"
    return nearest if _keeps(nearest, package) else f"{name} {package.version}"


def _clause(text: str, name: str, package: CondaPackage) -> str:
    clause = text.strip()
    if _keeps(f"{name} {clause}", package):
        return clause
    bound = _BOUND.fullmatch(clause)
    if bound is not None:
        return f"{bound[1]}={package.version}"
    series = _SERIES.fullmatch(clause)
    if series is None:
        return package.version
    parts = (series[1] or series[2]).split(".")
    return ".".join(package.version.split(".")[: len(parts)]) + ".*"
