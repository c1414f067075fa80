"""``python -m tests.resemblance TEXTS…``: makes the classifier of `envmedic.diagnosis.resemblance` from labelled texts.

Each file has JSON lines with the keys ``text`` and ``labels`` (classes, the first of which is the cause; ``none`` where no
environment is at fault), or ``fault`` in the place of ``labels``. The texts are other people's and no part of the project:
what is kept of them are words, and pairs of words, that stand in several. Before the table is written, each file is
judged by a classifier that is made from the others: what that is worth goes into ``docs/benchmarks-texts.md``.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.feature_selection import SelectKBest, chi2
from sklearn.preprocessing import normalize
from sklearn.svm import LinearSVC

from envmedic.api.context.settings import Settings
from envmedic.api.playbooks import load_playbooks
from envmedic.diagnosis import resemblance
from envmedic.diagnosis.resemblance import Table
from envmedic.model.events import EventStream
from envmedic.model.playbook import LoadedPlaybook
from envmedic.model.registries.faults import FAULTS, Fault
from envmedic.playbook.matching.match import read_text

TERMS = 4000
_TEXTS_OF_A_TERM = 3
"""Texts in which a term must stand: what stands in fewer may be somebody's name."""
_REGULARIZATION = 0.3
_NONE = "none"
_CLASSES: dict[str, Fault | None] = {_NONE: None, **{fault: fault for fault in FAULTS}}


@dataclass(frozen=True)
class Labelled:
    """A text as the classifier reads it."""

    file: str
    labels: tuple[Fault | None, ...]
    """What is right; the first is the cause."""
    terms: tuple[str, ...]


def main(arguments: Sequence[str]) -> int:
    """Print what the classifier is worth, and write the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.resemblance")
    parser.add_argument("texts", type=Path, nargs="+", help="JSON lines")
    parser.add_argument("-o", "--output", type=Path, default=resemblance.TABLE, help="file of the table")
    options = parser.parse_args(arguments)
    if len(options.texts) == 1:
        parser.error("two files are needed at least: each is judged by what is made from the others")
    playbooks = load_playbooks(Settings(stream=EventStream([])))
    texts = [text for file in options.texts for text in read(file, playbooks)]
    _print_held_out(texts)
    write(table_of(texts), options.output, len(texts))
    return 0


def read(file: Path, playbooks: Sequence[LoadedPlaybook]) -> list[Labelled]:
    """The texts of a file that have a label which is a class, or are no fault."""
    found = []
    for line in file.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        stated = row["labels"] if "labels" in row else [row["fault"] or _NONE]
        labels = tuple(_CLASSES[label] for label in stated if label in _CLASSES)
        if row["text"] and labels:
            told = read_text(row["text"].encode().split(b"\n"), playbooks)
            lines = resemblance.telling_lines(told).values()
            found.append(Labelled(file.name, labels, tuple(resemblance.terms(lines))))
    return found


def table_of(texts: Sequence[Labelled]) -> Table:
    """The classifier of labelled texts."""

    labels = [text.labels[0] or _NONE for text in texts]
    vectorizer = TfidfVectorizer(analyzer=_own, min_df=_TEXTS_OF_A_TERM, sublinear_tf=True, norm=None)
    values: Any = vectorizer.fit_transform([text.terms for text in texts])
    chosen = SelectKBest(chi2, k=min(TERMS, values.shape[1])).fit(normalize(values), labels).get_support()
    machine = LinearSVC(C=_REGULARIZATION).fit(normalize(values[:, chosen]), labels)
    names = vectorizer.get_feature_names_out()[chosen]
    columns = zip(names, vectorizer.idf_[chosen], machine.coef_.T, strict=True)
    return Table(
        classes=tuple(None if name == _NONE else name for name in machine.classes_.tolist()),
        bias=_hundredfold(machine.intercept_),
        terms={str(name): (*_hundredfold([rarity]), *_hundredfold(weights)) for name, rarity, weights in columns},
    )


def _own(terms: tuple[str, ...]) -> tuple[str, ...]:
    return terms


def _hundredfold(values: Any) -> tuple[int, ...]:
    return tuple(round(float(value) * resemblance.SCALE) for value in values)


def write(table: Table, file: Path, count: int) -> None:
    """Write `table`, a term on a line, so that a change of it can be read."""
    head = {
        "meta": {
            "generated": dt.datetime.now(tz=dt.timezone.utc).date().isoformat(),
            "made": f"by python -m tests.resemblance from {count} labelled texts",
        },
        "classes": table.classes,
        "bias": table.bias,
    }
    rows = ",\n".join(
        f"{json.dumps(term)}:{json.dumps(row, separators=(',', ':'))}" for term, row in table.terms.items()
    )
    start = json.dumps(head, indent=1).removesuffix("\n}")
    file.write_text(f'{start},\n "terms": {{\n{rows}\n}}\n}}\n', encoding="utf-8")


def _print_held_out(texts: Sequence[Labelled]) -> None:
    """For each file: how a classifier made from the other ones ranks its texts."""
    total = [0, 0, 0, 0, 0]
    for file in dict.fromkeys(text.file for text in texts):
        table = table_of([text for text in texts if text.file != file])
        figures = _judged([text for text in texts if text.file == file], table)
        total = [one + other for one, other in zip(total, figures, strict=True)]
        _say(file, figures)
    _say("together", total)


def _judged(texts: Sequence[Labelled], table: Table) -> list[int]:
    """Texts with a fault; of these right at first and among three; texts without; of these told as none."""
    faulty = first = among = sound = quiet = 0
    for text in texts:
        scores = resemblance.scored(text.terms, table)
        ranked = sorted(scores, key=lambda fault: -scores[fault])
        if text.labels == (None,):
            sound += 1
            quiet += ranked[:1] == [None]
            continue
        named = [fault for fault in ranked if fault is not None][: resemblance.GUESSES]
        faulty += 1
        first += named[:1] != [] and named[0] in text.labels
        among += any(fault in text.labels for fault in named)
    return [faulty, first, among, sound, quiet]


def _say(name: str, figures: Sequence[int]) -> None:
    faulty, first, among, sound, quiet = figures
    share = f"{first / max(1, faulty):6.1%} first, {among / max(1, faulty):6.1%} among three"
    sys.stdout.write(f"{name:24} {faulty:4} with a fault: {share}; {sound:3} without, {quiet:3} told as such\n")


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
