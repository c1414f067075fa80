"""Conda's order of versions, and whether a version answers to a constraint such as ``>=2.1,<3`` or ``1.8.*``.

Rules: https://docs.conda.io/projects/conda/en/stable/dev-guide/api/conda/models/version/ (VersionOrder, VersionSpec).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import zip_longest

from envmedic.conda_meta.globs import expression, globs, is_expression

Part = tuple[int, int, str]
"""A run of digits or of letters: its rank, then its number or its text."""
Component = tuple[Part, ...]
Number = tuple[Component, ...]

LONGEST = 1024
"""Characters of a spec or a constraint; those of addresses with their hashes have some hundreds."""
_TEXT, _INTEGER, _POST = 0, 1, 2
_ZERO: Part = (_INTEGER, 0, "")
_VALID = re.compile(r"[*.+!_0-9a-z]+")
_RUNS = re.compile(r"[0-9]+|[*]+|[^0-9*]+")
_OPERATOR = re.compile(r"(==|!=|<=|>=|~=|=|<|>)(?![=<>!~])(\S+)")
_TOKEN = re.compile(r"\s*\^[^$]*\$|\s*[()|,]|[^()|,]+")


def parse(text: str) -> tuple[Number, Number]:
    """The main and the local part of a version, the epoch first. Raises ValueError when conda refuses it."""
    version = text.strip().lower()
    if "-" in version and "_" not in version:
        version = version.replace("-", "_")
    epoch, mark, rest = version.rpartition("!")
    main, plus, local = rest.partition("+")
    if _VALID.fullmatch(version) is None or not main or (plus and not local) or "+" in local:
        raise ValueError(f"{text!r} is no version of conda's")
    if mark and not (epoch.isascii() and epoch.isdigit()):
        raise ValueError(f"{text!r} has an epoch that is no number")
    head = _split(main[:-1], "_") if main.endswith("_") else _split(main)
    return (((_INTEGER, int(epoch or 0), ""),), *head), _split(local) if local else ()


def _split(text: str, tail: str = "") -> Number:
    words = text.replace("_", ".").split(".")
    words[-1] += tail
    if not all(words):
        raise ValueError(f"{text!r} has an empty part")
    return tuple(_component(word) for word in words)


def _component(word: str) -> Component:
    """Numbers and letters stay in phase: what begins with letters gets a zero before them."""
    parts = tuple(map(_part, _RUNS.findall(word)))
    return parts if word[0].isdigit() else (_ZERO, *parts)


def _part(run: str) -> Part:
    if run.isdigit():
        return (_INTEGER, int(run), "")
    return (_POST, 0, "") if run == "post" else (_TEXT, 0, "DEV" if run == "dev" else run)


def compare(one: str, other: str) -> int:
    """Negative, zero or positive, as `one` comes before, with or after `other`. Raises ValueError."""
    (first, first_local), (second, second_local) = parse(one), parse(other)
    return _order(first, second) or _order(first_local, second_local)


def _order(one: Number, other: Number) -> int:
    """Missing parts count as zero."""
    for first, second in zip_longest(one, other, fillvalue=()):
        for left, right in zip_longest(first, second, fillvalue=_ZERO):
            if left != right:
                return -1 if left < right else 1
    return 0


def starts_with(version: str, beginning: str) -> bool:
    """Whether `version` is one of the series `beginning`: ``2.3.1`` of ``2.3``. Raises ValueError."""
    (main, local), (wanted, wanted_local) = parse(version), parse(beginning)
    if wanted_local:
        return _order(main, wanted) == 0 and _begins(local, wanted_local)
    return _begins(main, wanted)


def _begins(number: Number, wanted: Number) -> bool:
    last = len(wanted) - 1
    if _order(number[:last], wanted[:last]) != 0:
        return False
    have = number[last] if len(number) > last else ()
    *before, final = wanted[last]
    if _order((have[: len(before)],), (tuple(before),)) != 0:
        return False
    there = have[len(before)] if len(have) > len(before) else _ZERO
    if final[0] == _TEXT:
        return there[0] == _TEXT and there[2].startswith(final[2])
    return there == final


def satisfies(version: str, constraint: str) -> bool:
    """Whether `version` answers to `constraint`, as conda writes it. Raises ValueError when one cannot be read."""
    if len(constraint) > LONGEST:
        raise ValueError(f"a constraint of {len(constraint)} characters is none of conda's")
    tokens = [token.strip() for token in _TOKEN.findall(constraint)]
    try:
        verdict, rest = _any(tokens, version)
    except RecursionError as error:
        raise ValueError(f"{constraint!r} is nested too deeply") from error
    if rest:
        raise ValueError(f"{constraint!r} is no constraint of conda's")
    return verdict


def _any(tokens: Sequence[str], version: str) -> tuple[bool, Sequence[str]]:
    verdict, rest = _all(tokens, version)
    while rest and rest[0] == "|":
        other, rest = _all(rest[1:], version)
        verdict = verdict or other
    return verdict, rest


def _all(tokens: Sequence[str], version: str) -> tuple[bool, Sequence[str]]:
    verdict, rest = _one(tokens, version)
    while rest and rest[0] == ",":
        other, rest = _one(rest[1:], version)
        verdict = verdict and other
    return verdict, rest


def _one(tokens: Sequence[str], version: str) -> tuple[bool, Sequence[str]]:
    if not tokens or tokens[0] in {"|", ",", ")", ""}:
        raise ValueError("a constraint on versions is empty")
    if tokens[0] != "(":
        return _simple(version, tokens[0]), tokens[1:]
    verdict, rest = _any(tokens[1:], version)
    if not rest or rest[0] != ")":
        raise ValueError("a constraint on versions lacks a bracket")
    return verdict, rest[1:]


def _simple(version: str, constraint: str) -> bool:
    if constraint[0] == "^" or constraint[-1] == "$":
        return _expression(version, constraint)
    if constraint[0] in "=<>!~":
        return _related(version, constraint)
    if constraint == "*":
        return True
    if "*" in constraint.rstrip("*"):
        return globs(constraint, version)
    if constraint.endswith("*"):
        return starts_with(version, constraint.rstrip("*").rstrip("."))
    return version == constraint if "@" in constraint else compare(version, constraint) == 0


def _expression(version: str, constraint: str) -> bool:
    if not is_expression(constraint):
        raise ValueError(f"{constraint!r} is no regular expression from ^ to $")
    return expression(constraint, version)


def _related(version: str, constraint: str) -> bool:
    match = _OPERATOR.fullmatch(constraint)
    if match is None:
        raise ValueError(f"{constraint!r} has no operator of conda's")
    operator, stated = match[1], match[2]
    series = stated.endswith(".*")
    stated = stated.removesuffix(".*")
    if operator == "=" or (operator == "!=" and series):
        return starts_with(version, stated) is (operator == "=")
    if operator == "~=":
        if series:
            raise ValueError(f"{constraint!r} joins ~= with .*")
        return compare(version, stated) >= 0 and starts_with(version, stated.rpartition(".")[0])
    order = compare(version, stated)
    return {"==": order == 0, "!=": order != 0, "<=": order <= 0, ">=": order >= 0, "<": order < 0}.get(
        operator, order > 0
    )
