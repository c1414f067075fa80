"""Questions of a repair to other machines, and their answers: files beside its journal, each whole or not there.

``witness/question.json`` is the last question, ``witness/<number>-<machine>.json`` an answer. A network file system may
show old content, an old list of files or a file that has gone: then there is nothing yet, and the reader looks again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeVar

import msgspec

from envmedic.engine.fs.durable import make_directory, write_durably
from envmedic.engine.store import journal as journals
from envmedic.engine.store.journal import Journal
from envmedic.engine.store.layout import Store, TransactionDirectory
from envmedic.errors import RecoveryNeeded
from envmedic.model.answers.witness import WitnessAnswer, WitnessQuestion
from envmedic.model.base import Model, to_json

_QUESTION = "question.json"
_M = TypeVar("_M", bound=Model)


def ask(directory: TransactionDirectory, question: WitnessQuestion) -> None:
    """Put a question in the place of the last one. Raises OSError."""
    if not directory.witness.is_dir():
        make_directory(directory.witness)
    write_durably(directory.witness / _QUESTION, to_json(question).encode())


def asked(directory: TransactionDirectory) -> WitnessQuestion | None:
    """The last question of a transaction; None where nothing is asked."""
    found = _read(directory.witness / _QUESTION, WitnessQuestion)
    return found if found is not None and found.transaction == directory.transaction else None


def answer(directory: TransactionDirectory, given: WitnessAnswer) -> None:
    """Give an answer. Raises OSError."""
    write_durably(directory.witness / _answer(given.number, given.machine), to_json(given).encode())


def answers(
    directory: TransactionDirectory, question: WitnessQuestion, machines: Iterable[str]
) -> Mapping[str, WitnessAnswer]:
    """The answers to a question that these machines have given so far."""
    found = {
        machine: _read(directory.witness / _answer(question.number, machine), WitnessAnswer) for machine in machines
    }
    return {
        machine: given
        for machine, given in found.items()
        if given is not None
        and (given.transaction, given.number, given.machine) == (question.transaction, question.number, machine)
    }


def asking(store: Store) -> tuple[TransactionDirectory, WitnessQuestion] | None:
    """The transaction that asks now, with its question; None without one."""
    for directory in reversed(store.transactions()):
        journal = journal_of(directory)
        if journal is None or journal.settled or journal.prefix != str(store.prefix):
            continue
        question = asked(directory)
        if question is not None:
            return directory, question
    return None


def journal_of(directory: TransactionDirectory) -> Journal | None:
    """The journal of a transaction; None where it cannot be read at this moment."""
    try:
        return journals.read(directory)
    except RecoveryNeeded:
        return None


def _answer(number: int, machine: str) -> str:
    return f"{number}-{machine}.json"


def _read(path: Path, kind: type[_M]) -> _M | None:
    """A document; None where it is not there, or not whole."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None
