"""Confirmed findings that follow from another one: they are shown below it, since its repair ends them too."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final

import msgspec

from envmedic.diagnosis.candidates import CERTAIN_ENOUGH
from envmedic.model.facts import Environment
from envmedic.model.findings import Finding
from envmedic.model.registries.faults import FAULT_CLASSES
from envmedic.model.vocabulary.names import described

_WORD = re.compile(r"[\w.+-]+")
_ANSWER = re.compile(r"^: (?:yes: |no: )?")
"""What stands between the description of a fact and its value in words."""
_GENERIC: Final = frozenset({"torch"})
"""Distributions that all others of their kind load, so that damage to them shows anywhere."""


def below_roots(findings: Sequence[Finding], environment: Environment | None) -> tuple[Finding, ...]:
    """Return the findings that are roots, in their order, each with those that follow from it."""
    names = frozenset(item.name for item in environment.distributions) if environment is not None else frozenset()
    about = {id(item): _subjects(item, names) for item in findings}
    gone = {id(item) for item in findings if environment is not None and _of_damaged_file(item, environment)}
    parents = {id(item): parent for item in findings if (parent := _parent(item, findings, about, gone)) is not None}
    children: dict[int, list[Finding]] = {}
    for item in findings:
        root = _root(item, parents)
        if root is not item:
            children.setdefault(id(root), []).append(item)
    return tuple(
        msgspec.structs.replace(item, consequences=tuple(children[id(item)])) if id(item) in children else item
        for item in findings
        if _root(item, parents) is item
    )


def _subjects(finding: Finding, names: frozenset[str]) -> frozenset[str]:
    """The installed distributions and the libraries that the facts of a finding name."""
    found = {
        word.rstrip(".")
        for item in finding.evidence
        if item.kind == "fact"
        for word in (*_WORD.findall(item.what.removeprefix(described(item.where))), item.where.partition(".")[0])
    }
    return frozenset(word for word in found if word in names or ".so" in word)


def _of_damaged_file(finding: Finding, environment: Environment) -> bool:
    """Whether the module that a finding's text misses is a file that a distribution lists and has lost."""
    module = ".".join(finding.groups[key] for key in ("module", "part") if key in finding.groups).replace(".", "/")
    if not module or environment.files is None:
        return False
    file = re.compile(rf"(?:^|/){re.escape(module)}(?:/{re.escape(finding.groups.get('name', '__init__'))})?(?:/|\.\w)")
    return any(file.search(path) for item in environment.files for path in (*item.missing, *item.cut_off))


def _parent(
    finding: Finding, findings: Sequence[Finding], about: Mapping[int, frozenset[str]], gone: Collection[int]
) -> Finding | None:
    """The first finding that this one follows from.

    Either the class of that finding explains it, and both are about one thing, or an earlier finding states all its
    facts, or `gone` has it as the lack of a file that is gone. What facts neither confirm nor
    refute follows from an earlier, confirmed finding of the same lines.
    """
    if finding.confirmed is None:
        return next((other for other in findings[: findings.index(finding)] if _explains_lines(other, finding)), None)
    if finding.confirmed is not True:
        return None
    before = True
    for other in findings:
        if other is finding:
            before = False
            continue
        if other.confirmed is not True or other.confidence < CERTAIN_ENOUGH:
            continue
        if before and _states(other, finding):
            return other
        if other.fault == "half-installed" and id(finding) in gone:
            return other
        if finding.fault not in FAULT_CLASSES[other.fault].symptoms:
            continue
        subjects = about[id(other)]
        if FAULT_CLASSES[other.fault].of_host or subjects & (_GENERIC | about[id(finding)]):
            return other
    return None


def _explains_lines(other: Finding, finding: Finding) -> bool:
    """Whether `other` is confirmed, and made of each line of the text that `finding` is made of."""
    own = {item.where for item in finding.evidence if item.kind == "text"}
    lines = {item.where for item in other.evidence if item.kind == "text"}
    return other.confirmed is True and other.confidence >= CERTAIN_ENOUGH and bool(own) and own <= lines


def _states(other: Finding, finding: Finding) -> bool:
    """Whether each piece of evidence of `finding` is one of the facts that `other` lists."""
    stated = {
        value
        for item in other.evidence
        if item.kind == "fact" and item.supports
        for value in _ANSWER.sub("", item.what.removeprefix(described(item.where))).split("; ")
    }
    own = {item.what for item in finding.evidence if item.supports}
    return bool(own) and own <= stated


def _root(finding: Finding, parents: Mapping[int, Finding]) -> Finding:
    seen = {id(finding)}
    while (parent := parents.get(id(finding))) is not None and id(parent) not in seen:
        seen.add(id(parent))
        finding = parent
    return finding
