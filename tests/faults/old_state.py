"""What earlier versions, half a deletion and lost files leave: nothing is guessed, nothing is lost."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from tests.cli.support import Done
from tests.faults import armed
from tests.faults.cases import Case
from tests.faults.room import Room, told

_SLICE = ("no journal", "a record that breaks off", "half of a stage")
Damage = Callable[[Path], None]


def cases(folder: Path, *, short: bool = False) -> Iterator[Case]:
    """Each damage to the state of a finished or an interrupted repair, and what the next commands make of it."""
    room = Room.build(folder / "room")
    if not short:
        room.learn()
    for name, (step, damage, stopped) in _DAMAGES.items():
        if not short or name in _SLICE:
            yield name, partial(_try, room, step, damage, stopped=stopped)


def _try(room: Room, step: str, damage: Damage, *, stopped: bool) -> tuple[str, str]:
    """Bring the state about, damage it, and give the commands that users give next."""
    ended = armed.run(room, room.repairing(), at=0 if step else None, name=step)
    assert ended.killed == bool(step), ended.done.told()
    directory = next(path for path in room.store.iterdir() if (path / "prefix").exists())
    damage(directory)
    side = room.side()
    kept = _trees(directory)
    done = room.run(*room.command("recover" if step else "undo"))
    said = _stopped(room, directory, done, kept) if stopped else _went_on(room, done)
    _reset(room, side)
    return side, said


def _trees(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir() if path.is_dir()} if directory.is_dir() else set()


def _stopped(room: Room, directory: Path, done: Done, kept: set[str]) -> str:
    """The command tells of the damage and touches nothing; so does the next repair."""
    side = room.side()
    said = told(done, done.code)
    assert done.code in {1, 2, 6}, done.told()
    assert room.side() == side
    assert _trees(directory) == kept, "something that may be needed was deleted"
    again = room.run(*room.repairing())
    if again.code or again.document["outcome"] != "already":  # this very plan was carried out, as its record says
        assert again.code in {1, 2, 6}, again.told()
        assert told(again, again.code)
    assert room.side() == side
    return said


def _went_on(room: Room, done: Done) -> str:
    """The damage does not matter, and all is settled."""
    assert done.code == 0, done.told()
    room.side()
    return "settled all the same"


def _reset(room: Room, side: str) -> None:
    """By hand, as the hint of the error says: the transaction's directory goes; the tree that it kept goes back."""
    now = room.side()
    kept = next(iter(room.store.glob("*/env")), None)
    if now == "new" and kept is not None:
        shutil.rmtree(room.prefix)
        kept.rename(room.prefix)
    assert side in {"old", "new"}
    if room.side() == "new":
        raise AssertionError("the old environment is not there any more")
    room.forget()


def _journal(**changes: object) -> Damage:
    def damage(directory: Path) -> None:
        journal = json.loads((directory / "journal.json").read_bytes())
        (directory / "journal.json").write_text(json.dumps({**journal, **changes}))

    return damage


def _without(*fields: str) -> Damage:
    def damage(directory: Path) -> None:
        journal = json.loads((directory / "journal.json").read_bytes())
        (directory / "journal.json").write_text(json.dumps({key: journal[key] for key in journal if key not in fields}))

    return damage


def _removed(name: str) -> Damage:
    return lambda directory: (directory / name).unlink()


def _cut(name: str, to: int = 0) -> Damage:
    def damage(directory: Path) -> None:
        content = (directory / name).read_bytes()
        (directory / name).write_bytes(content[: min(to, len(content) // 2)])

    return damage


def _half_a_tree(directory: Path) -> None:
    for number, path in enumerate(sorted((directory / "env").rglob("*.py"))):
        if number % 2:
            path.unlink()


def _into_trash(directory: Path) -> None:
    (directory / "trash").mkdir()
    (directory / "env").rename(directory / "trash" / "0")
    _half_a_tree_in(directory / "trash" / "0")


def _half_a_tree_in(tree: Path) -> None:
    for number, path in enumerate(sorted(tree.rglob("*.py"))):
        if number % 2:
            path.unlink()


def _locks(directory: Path) -> None:
    shutil.rmtree(directory.parent / "locks")


_REPAIRING, _SWAPPED = "after-repairing", "swapped"
_DAMAGES: dict[str, tuple[str, Damage, bool]] = {
    "a journal of an earlier version": ("", _journal(schema="envmedic.journal/0"), True),
    "a journal of a later version": ("", _journal(schema="envmedic.journal/2"), True),
    "a journal with fields of a later version": ("", _journal(colour="green"), True),
    "a journal without the fields of later versions": (_REPAIRING, _without("clone", "staging"), False),
    "a journal in a state that there is not": (_REPAIRING, _journal(state="thinking"), True),
    "a journal of another transaction": (_REPAIRING, _journal(transaction="20200101T000000000000Z-abcdef"), True),
    "an empty journal": (_REPAIRING, _cut("journal.json"), True),
    "a journal that breaks off, of an exchange": (_SWAPPED, _cut("journal.json", 40), True),
    "no journal": (_REPAIRING, _removed("journal.json"), True),
    "a history without its record": ("", _removed("record.json"), True),
    "an interrupted repair without its record": (_SWAPPED, _removed("record.json"), True),
    "a record that breaks off": (_REPAIRING, _cut("record.json", 200), True),
    "half of a stage": (_REPAIRING, _half_a_tree, False),
    "half of a stage in the trash": (_REPAIRING, _into_trash, False),
    "no name of the environment": (_REPAIRING, _removed("prefix"), False),
    "no locks": (_REPAIRING, _locks, False),
    "no plan": (_REPAIRING, _removed("plan.json"), False),
    "no fingerprint to compare with": ("", _removed("fingerprint"), True),
    "a fingerprint that breaks off": ("", _cut("fingerprint-live", 100), True),
    "no events": (_REPAIRING, _removed("events.jsonl"), False),
}
"""Name → the step at which the repair was killed (none: it was finished), the damage, and whether it stops envmedic."""
