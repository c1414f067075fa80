"""Findings by facts alone: damage that no playbook's condition states, and requirements that nobody has missed yet.

A latent finding is reported and makes the verdict `env`; a repair takes it up only where the user names its playbook.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from envmedic.analysis.consumer_faults import consumer_faults
from envmedic.analysis.packages import lost_sources
from envmedic.analysis.packages.requirement_faults import HUGGING_FACE, RequirementFaults, requirement_faults
from envmedic.compat.installed_requirements import Demand, Unmet, unsuited_python
from envmedic.diagnosis.areas.conda_packages import lacking, unrecorded
from envmedic.model.facts import Defect, DefectKind, Environment, Facts
from envmedic.model.findings import Evidence, Finding
from envmedic.model.registries.faults import Fault

_SHOWN: Final = 20
"""Pieces of evidence in one finding."""
REQUIREMENT: Final = 0.6
"""Confidence that an unmet requirement is a fault: many are stated more strictly than need be."""
EDITED: Final = 0.5
"""The same of a file that somebody has changed, mostly on purpose."""
NAMED: Final = 0.86
"""The same of one that the error was raised in, or names."""
CERTIFICATES: Final = 0.2
"""The same of a bundle of certificates, which is made to be added to: too little for a verdict."""
_SITE: Final = re.compile(r"^.*[/\\](?:site|dist)-packages[/\\]")
_AGAIN: Final = (
    "Install the distribution again in the same version: `uv pip install --reinstall --no-deps NAME==VERSION`"
)


class _Kind(NamedTuple):
    """What a kind of defect means."""

    confidence: float
    summary: str
    advice: str


_KINDS: dict[DefectKind, _Kind] = {
    "interpreter-version": _Kind(
        0.9,
        "the interpreter is of another Python than the packages",
        "Lead bin/python back to that Python, or make the environment again with the one that is here",
    ),
    "standard-library": _Kind(
        0.9,
        "Python lacks parts of its standard library",
        "Install that Python again, with all its parts; no environment can bring them",
    ),
    "pyvenv": _Kind(
        0.85,
        "pyvenv.cfg, which makes the directory a virtual environment, is gone or leads nowhere",
        "Run `python3 -m venv --upgrade DIRECTORY` (or `uv venv --allow-existing DIRECTORY`) with the Python that it was "
        "made with; packages stay",
    ),
    "start-hook": _Kind(
        0.85,
        "code that runs whenever Python starts breaks it",
        "Rename that file, and see what wrote it; `python -S` starts without it",
    ),
    "metadata": _Kind(
        0.6,
        "the metadata of a distribution are empty, so that its requirements are unknown",
        _AGAIN,
    ),
    "byte-code": _Kind(
        0.8,
        "byte code that is not that of its source is imported",
        "Remove these files; Python makes them again",
    ),
}


_OF_BASE_PYTHON: Final = frozenset[DefectKind]({"interpreter-version", "pyvenv"})


def find(facts: Facts, named: Collection[str] = ()) -> tuple[Finding, ...]:
    """Return the findings that facts alone give, surest first; none without an environment.

    `named` are the modules that the last error of a text was raised in or names: where one is not as it was installed,
    that finding is `NAMED` sure.
    """
    environment = facts.environment
    if environment is None:
        return ()
    found = [
        *_defects(_without_plan(environment)),
        *_lost_sources(environment),
        *_requirements(facts, environment),
        *_edited(environment, named),
    ]
    found += [*_lacking_records(environment), *_unreadable(environment)]
    return tuple(sorted(found, key=lambda item: -item.confidence))


def _without_plan(environment: Environment) -> Iterator[Defect]:
    """The defects that another Python of the host does not end, see the playbook base-python."""
    replaced = environment.interpreter.replacement is not None
    yield from (item for item in environment.defects if not (replaced and item.kind in _OF_BASE_PYTHON))


def _defects(found: Iterable[Defect]) -> Iterator[Finding]:
    defects = tuple(found)
    for kind, meaning in _KINDS.items():
        own = [item for item in defects if item.kind == kind and item.now is None]
        if own:
            yield _finding(
                "half-installed",
                meaning.confidence,
                meaning.summary,
                [Evidence(kind="fact", where=item.path, what=f"{item.path} {item.detail}") for item in own],
                advice=meaning.advice,
            )


def _lost_sources(environment: Environment) -> Iterator[Finding]:
    evidence = [
        Evidence(kind="fact", where=item.path, what=f"{item.distribution}: {item.detail}")
        for item in lost_sources.lost(environment)
    ]
    if evidence:
        found = _finding("half-installed", 0.85, "an editable install has lost its source", evidence, advice="")
        yield msgspec.structs.replace(found, playbook="lost-source", advice=lost_sources.advice(environment))


def _finding(
    fault: Fault,
    confidence: float,
    summary: str,
    evidence: Sequence[Evidence],
    *,
    advice: str,
    playbook: str | None = None,
) -> Finding:
    count = len(evidence)
    shown = evidence[0].what if count == 1 else f"{count}, such as {evidence[0].what}"
    return Finding(
        fault=fault,
        playbook=playbook,
        signature=None,
        confidence=confidence,
        confirmed=True,
        summary=f"{summary}: {shown}",
        evidence=tuple(evidence[:_SHOWN]),
        fix_kind="pin-package" if playbook is not None else "other",
        latent=True,
        advice=(advice,),
    )


def _requirements(facts: Facts, environment: Environment) -> Iterator[Finding]:
    """Unmet requirements by the playbook that can meet them; of the rest one finding without any."""
    found = requirement_faults(environment, facts.host)
    parts = consumer_faults(environment, facts.host).parts
    groups: dict[str | None, list[Demand]] = {}
    for item in found.every:
        if not item.met and not _brought_by_conda(item) and not _served_by_host(item, environment):
            groups.setdefault(_playbook(item, found, parts), []).append(item)
    for playbook, items in groups.items():
        yield _unmet(playbook, [item.unmet() for item in items])
    unsuited = [*unsuited_python(environment)]
    if unsuited:
        yield _unmet(None, unsuited)


def _playbook(item: Demand, found: RequirementFaults, parts: Collection[Demand]) -> str | None:
    """The playbook that moves what is unmet, if one does without a text."""
    if item in parts:
        return "consumer-parts"
    if item in found.missing:
        return "missing-requirement"
    if item.name in HUGGING_FACE and item in found.hugging_face:
        return "transformers-family"
    return "unmet-requirement" if item in found.conflicts else None


def _unmet(playbook: str | None, items: Sequence[Unmet]) -> Finding:
    sentences = tuple(dict.fromkeys(item.sentence() for item in items))
    advice = (
        "Install releases that fit each other in one command, so that the resolver sees all requirements"
        if playbook is None
        else f"`envmedic plan --playbook {playbook}` shows what would meet them"
    )
    return _finding(
        "companion-version",
        REQUIREMENT,
        "requirements of installed distributions are not met",
        [Evidence(kind="fact", where="requirements", what=text) for text in sentences],
        advice=advice,
        playbook=playbook,
    )


def _brought_by_conda(item: Demand) -> bool:
    """Whether conda answers for it: its packages have other names, and their records state what they need."""
    return item.by.owner == "conda" and item.found is None


def _served_by_host(item: Demand, environment: Environment) -> bool:
    """Whether the loader finds all of torch's CUDA libraries elsewhere, so that the wheel is not missed."""
    libraries = environment.cuda_libraries
    return item.name.startswith("nvidia-") and bool(libraries) and all(library.path for library in libraries)


def _edited(environment: Environment, named: Collection[str]) -> Iterator[Finding]:
    """Files of the environment that are whole and not as installed, which no repair overwrites."""
    asked = {_inside(path) for path in named}
    changed = [
        (f"{item.distribution}=={item.version}", path, f"{path} ({item.distribution} {item.version})")
        for item in environment.files or ()
        if item.distribution not in environment.duplicates
        for path in item.changed
    ]
    told = [item for item in changed if _inside(item[1]) in asked]
    bundles = _facts(item for item in changed if item[1].endswith(".pem"))
    others = _facts(item for item in changed if item not in told and not item[1].endswith(".pem"))
    if told:
        pins = tuple(dict.fromkeys(pin for pin, _, _ in told))
        of_conda = {item.name for item in environment.distributions if item.owner == "conda"}
        advice = (
            f"Unless the change was meant: install {', '.join(pins)} again with conda"
            if any(pin.partition("==")[0] in of_conda for pin in pins)
            else f"Unless the change was meant: `uv pip install --reinstall --no-deps {' '.join(pins)}`"
        )
        summary = "the module that the error was raised in or names is not as it was installed"
        found = _finding("half-installed", NAMED, summary, _facts(told), advice=advice)
        yield msgspec.structs.replace(found, named=True)
    if others:
        advice = "envmedic leaves them as they are; install the distribution again only if the change was not meant"
        summary = "installed files differ from the lists of their distributions"
        yield _finding("half-installed", EDITED, summary, others, advice=advice)
    if bundles:
        advice = "Companies add their own certificates there; install the distribution again only if this was not meant"
        summary = "bundles of certificates differ from the installed ones"
        yield _finding("half-installed", CERTIFICATES, summary, bundles, advice=advice)


def _facts(items: Iterable[tuple[str, str, str]]) -> list[Evidence]:
    return [Evidence(kind="fact", where=path, what=text) for _, path, text in items]


def _inside(path: str) -> str:
    return _SITE.sub("", path).replace("\\", "/")


def _lacking_records(environment: Environment) -> Iterator[Finding]:
    """Packages that conda's other packages depend on, and that pip or uv brought without a record of conda's."""
    if environment.conda is not None:
        repaired = {*unrecorded(environment, environment.conda)}
        names = [text for text in dict.fromkeys(lacking(environment.conda)) if text not in repaired]
        if names:
            evidence = [Evidence(kind="fact", where="conda-meta", what=f"{text} has no record") for text in names]
            advice = "Install them again with conda, in the same versions: `conda install NAME=VERSION`"
            yield _finding(
                "half-installed", 0.8, "conda packages depend on what has no record", evidence, advice=advice
            )


def _unreadable(environment: Environment) -> Iterator[Finding]:
    """Lists of files that are no lists, and compiled modules that no loader of this machine would take."""
    records = [
        Evidence(kind="fact", where=f"{item.metadata_path}/RECORD", what=f"RECORD of {item.name}: {item.record_error}")
        for item in environment.distributions
        if item.record_error is not None and not item.outside_prefix
    ]
    known = {path for item in environment.files or () for path in (*item.missing, *item.cut_off)}
    modules = [
        Evidence(kind="fact", where=item.path, what=f"{item.path}: {item.error}")
        for item in (*environment.libraries, *environment.extensions)
        if item.error is not None and item.path not in known
    ]
    if records:
        yield _finding("half-installed", 0.7, "the list of a distribution's files is damaged", records, advice=_AGAIN)
    if modules:
        yield _finding("half-installed", 0.85, "compiled modules cannot be loaded", modules, advice=_AGAIN)
