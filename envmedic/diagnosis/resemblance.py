"""Guesses at the cause of a text that no signature recognises, by its words alone.

Signatures know messages. A text whose message none of them knows still has words, and a text about a library that is
not found has other words than one about a compiler. A linear classifier, made beforehand from labelled texts
(``python -m tests.resemblance``; figures in ``docs/benchmarks-texts.md``), ranks the classes of faults by them.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import islice, pairwise
from pathlib import Path
from typing import Final

import msgspec

from envmedic.compat.tables import read_packed
from envmedic.model.base import Model
from envmedic.model.findings import Diagnosis, Evidence, Finding
from envmedic.model.playbook import ReadText
from envmedic.model.registries.faults import FAULT_CLASSES, Fault

TABLE: Final = Path(__file__).with_suffix(".json")
GUESSES: Final = 3
"""Most classes that are named: the right one is among three for nearly all texts, and the first one for most."""
_MOST, _LEAST = 0.4, 0.1
"""Confidence of the best guess, and of the worst: far from a verdict."""
_NO_GUESS = 0.1
"""Score by which "no fault of an environment" surpasses every class where nothing is guessed."""
_DISPUTE = 0.4
"""Score by which the words must surpass the class of a message to be believed before it."""
_ENOUGH_TO_DISPUTE = 16
"""Terms of a text that the table must know for that: of a bare line its signature knows more."""
_FEWEST_TERMS = 6
"""Terms of a text that the table must know: a word or two stand in texts of every class."""
_LETTERS_BY_CHANCE = 3
"""Length of words that what is no text has by chance: two longer terms must be known."""
_CHARACTERS = 4000
"""Length of the end of a text that counts: the classifier is made from excerpts."""
SCALE: Final = 100
"""What the integers of the table are divided by."""
_ADDRESS = re.compile(r"0x[0-9a-fA-F]+|\b[0-9a-f]{12,64}\b")
_CAPITAL_INSIDE = re.compile(r"([a-z])([A-Z])")
_WORD = re.compile(r"[A-Za-z]{2,}")
_LONGEST_WORD = 24
"""Longer ones are mangled names and encoded data."""
_SHOWN_CHARACTERS = 500


class Table(Model, frozen=True, kw_only=True):
    """The classifier: integers, each a hundred times its value."""

    classes: tuple[Fault | None, ...]
    """None: no environment is at fault."""
    bias: tuple[int, ...]
    """What speaks for each class in any text."""
    terms: dict[str, tuple[int, ...]]
    """Words, and pairs of them on one line: its rarity among the labelled texts, then its weight for each class."""


def second_opinion(diagnosis: Diagnosis, text: ReadText, table: Table) -> Diagnosis:
    """`diagnosis` with what the words of `text` say to it, where no fact has decided.

    Where it is doubtful, or the words speak by a wide margin for another class than that of its first finding, the
    likeliest classes that it does not name are added as guesses: findings without a playbook and without a signature, of
    no more confidence than the findings before them. Where both is so, that class comes first and nothing is sure any more.
    """
    lines = telling_lines(text)
    counted = [term for term in terms(lines.values()) if term in table.terms]
    scores = scored(counted, table)
    ranked = sorted((fault for fault in scores if fault is not None), key=lambda fault: -scores[fault])
    if not ranked or scores.get(None, -math.inf) - scores[ranked[0]] > _NO_GUESS:
        return diagnosis
    first = diagnosis.findings[0] if diagnosis.findings else None
    # a fault that the table does not know has no score, and no word speaks against it
    against = 0.0 if first is None else scores[ranked[0]] - scores.get(first.fault, math.inf)
    disputed = against >= _DISPUTE and len({*counted}) >= _ENOUGH_TO_DISPUTE
    if not (diagnosis.doubtful or disputed):
        return diagnosis
    by_text_alone = all(item.confirmed is None for item in diagnosis.every)
    if first is not None and by_text_alone and disputed and diagnosis.doubtful:
        diagnosis = _undecided(diagnosis, first, _guess(ranked[0], scores[ranked[0]], lines, table))
    known = {item.fault for item in diagnosis.every}
    told = min((item.confidence for item in diagnosis.findings), default=1.0)
    others = (_at_most(told, _guess(fault, scores[fault], lines, table)) for fault in ranked if fault not in known)
    room = max(0, GUESSES - len(known))
    return msgspec.structs.replace(diagnosis, findings=(*diagnosis.findings, *islice(others, room)))


def _undecided(diagnosis: Diagnosis, first: Finding, guess: Finding) -> Diagnosis:
    """`diagnosis` without a sure finding: those of the guess's class, or it, come before `first` and all others."""
    own = tuple(item for item in diagnosis.findings if item.fault == guess.fault)
    others = tuple(item for item in diagnosis.findings if item.fault != guess.fault)
    # words and a message that agree are as sure as the words
    front = msgspec.structs.replace(own[0], confidence=guess.confidence) if own else guess
    return msgspec.structs.replace(
        diagnosis,
        verdict="unknown",
        reason=f"a line of it points to {first.fault}, and its words as a whole to {guess.fault}",
        advice=(),
        findings=(front, *(_at_most(guess.confidence, item) for item in (*own[1:], *others))),
    )


def _at_most(confidence: float, finding: Finding) -> Finding:
    return msgspec.structs.replace(finding, confidence=min(confidence, finding.confidence))


def telling_lines(text: ReadText) -> dict[int, str]:
    """What counts of `text`, by the numbers of its lines: the end of what stands around its failures."""
    lines: dict[int, str] = {}
    length = 0
    for number, line in reversed(text.around):
        if length < _CHARACTERS:
            lines[number] = line
            length += len(line) + 1
    return dict(reversed(lines.items()))


def _guess(fault: Fault, score: float, lines: Mapping[int, str], table: Table) -> Finding:
    number = _telling_line(lines, fault, table)
    return Finding(
        fault=fault,
        playbook=None,
        signature=None,
        # a score of 0 is that of texts which were told right more often than not
        confidence=min(_MOST, max(_LEAST, round(_MOST * (1 + score), 2))),
        confirmed=None,
        summary=FAULT_CLASSES[fault].title,
        evidence=(Evidence(kind="text", where=f"log:{number}", what=lines[number][:_SHOWN_CHARACTERS]),),
        fix_kind="other",
    )


def _telling_line(lines: Mapping[int, str], fault: Fault, table: Table) -> int:
    """Number of the line whose words speak most for `fault`."""
    column = 1 + table.classes.index(fault)
    rows = {
        number: [table.terms[term] for term in {*terms([line])} & table.terms.keys()] for number, line in lines.items()
    }
    return max(rows, key=lambda number: sum(row[0] * row[column] for row in rows[number]))


def scored(counted: Iterable[str], table: Table) -> dict[Fault | None, float]:
    """How much the terms speak for each class; nothing where the table knows too few of them."""
    counts = Counter(term for term in counted if term in table.terms)
    values = {term: (1 + math.log(count)) * table.terms[term][0] for term, count in counts.items()}
    length = math.sqrt(sum(value * value for value in values.values()))
    longer = [term for term in values if len(term) > _LETTERS_BY_CHANCE]
    if len(values) < _FEWEST_TERMS or not longer[1:]:
        return {}
    return {
        fault: (
            table.bias[column]
            + sum(value / length * table.terms[term][1 + column] for term, value in values.items())
        ) / SCALE
        for column, fault in enumerate(table.classes)
    }  # fmt: skip


def terms(lines: Iterable[str]) -> Iterator[str]:
    """The words of `lines` in small letters, parts of names by themselves, and each pair of neighbours on a line."""
    for line in lines:
        text = _CAPITAL_INSIDE.sub(r"\1 \2", _ADDRESS.sub(" ", line))
        words = [word.lower() for word in _WORD.findall(text) if len(word) <= _LONGEST_WORD]
        yield from words
        yield from (f"{one} {next_one}" for one, next_one in pairwise(words))


@lru_cache(maxsize=1)
def load_table() -> Table:
    """The classifier that is shipped."""
    return table_from(TABLE)


def table_from(file: Path) -> Table:
    """The classifier in `file`, as ``python -m tests.resemblance`` writes it."""
    return msgspec.json.decode(read_packed(file), type=Table)
