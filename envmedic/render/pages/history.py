"""Generations as a list and as pages, and the questions before an undo, redo or prune."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from envmedic.errors import EnvmedicError
from envmedic.model.plan import Purpose
from envmedic.model.record import Difference, Generation, History, KeptTree, NewFiles, State
from envmedic.render.cells import end, pairs
from envmedic.render.documents.record import difference_lines, headed
from envmedic.render.style import size
from envmedic.render.text import Line, TextPart, Tone, line, visible

FOUND, NOW = "found", "now"
_LISTED = 12
_STATES: dict[State, str] = {
    "undone": "undone", "aborted": "came to nothing", "cloning": "under way",
    "repairing": "under way", "ready": "under way", "exchanged": "under way", "undoing": "under way",
    "redoing": "under way",
}  # fmt: skip


_DONE: dict[Purpose, str] = {"repair": "repaired", "install": "installed", "snapshot": "snapshot"}


class GenerationLine(msgspec.Struct, frozen=True):
    """A state in the list: the environment now, a generation, or the environment as envmedic found it."""

    key: str
    generation: Generation | None = None
    first: bool = False
    """Whether the live tree is the one from before the first repair; of `NOW` and `FOUND`."""
    marked: bool = False


def states(history: History, marked: str | None = None) -> tuple[GenerationLine, ...]:
    """All states: now, every generation, newest first, and the environment as it was found."""
    if not history.generations:
        return ()
    first = not any(item.live for item in history.generations)
    found = [(NOW, None), *((item.transaction, item) for item in history.generations), (FOUND, None)]
    return tuple(GenerationLine(key, item, first=first and item is None, marked=key == marked) for key, item in found)


def state_item(state: GenerationLine, cells: int) -> list[Line]:
    """Two lines: the state, and its changes."""
    item = state.generation
    tone: Tone
    if item is None:
        now = state.key == NOW
        head, tone, note = "Now" if now else "As it was found", "bold", "live" if state.first and not now else ""
        detail = "the environment as it is" if now else "before the first repair"
    else:
        head = f"{'* ' if item.live else ''}{when(item.started)}"
        tone = "good" if item.live else "plain" if item.state == "done" else "dim"
        note = "live" if item.live else _state(item)
        detail = headed(item, ", ".join(item.changes)) or "no distribution changed"
    room = max(cells - 2, 4)
    shown = end(visible(head), room)
    return [
        (
            TextPart("+ " if state.marked else "  ", "accent"),
            TextPart(shown, tone),
            TextPart(end(f"  {note}", max(room - len(shown), 0)) if note else "", "dim"),
        ),
        (TextPart("  "), TextPart(end(visible(detail), room), "dim")),
    ]


def _state(item: Generation) -> str:
    return _DONE[item.purpose] if item.state == "done" else _STATES[item.state]


def when(moment: str) -> str:
    """A time of a record, to the minute."""
    return moment.replace("T", " ").partition("+")[0].removesuffix("Z")[:16]


def state_page(
    state: GenerationLine | None, history: History, outside: Difference | EnvmedicError | None
) -> list[Line]:
    """A state as a page; of the environment now, the changes from outside envmedic."""
    if state is None:
        return [
            line("envmedic has changed nothing here yet.", "bold"),
            line(""),
            line("Every repair keeps the environment from before it. It is listed here, and z brings it back."),
        ]
    if state.generation is not None:
        return generation_page(state.generation)
    if state.key == NOW:
        return [line("The environment as it is now", "bold"), line(""), *_outside(outside)]
    kept = any(item.kept and item.parent is None for item in history.generations)
    told = "It is there now." if state.first else "u brings it back." if kept else "Its tree was removed by prune."
    return [line("The environment as envmedic first found it", "bold"), line(""), line(told)]


def _outside(outside: Difference | EnvmedicError | None) -> list[Line]:
    title = line("Changed outside envmedic since", "accent")
    if outside is None:
        return [title, line("… looking", "dim")]
    if isinstance(outside, EnvmedicError):
        return [title, line(f"! {outside.summary}", "bad"), line(f"  {outside.cause or outside.hint or ''}")]
    if outside.files_compared and not (outside.distributions or outside.added or outside.removed or outside.changed):
        return [title, line("✓ nothing", "good")]
    # without the names of the two states and the blank line: the title says both
    return [title, *difference_lines(outside)[2:]]


def generation_page(item: Generation) -> list[Line]:
    """A generation: its data, its changes, and the ways from it."""
    rows = [
        ("transaction", item.transaction),
        ("state", ("live, " if item.live else "") + _state(item)),
        ("started", f"{when(item.started)} UTC"),
        ("finished", f"{when(item.finished)} UTC" if item.finished else "-"),
        ("playbook", item.playbook or "-"),
        ("made from", item.parent or "the environment as it was found"),
        ("on disk", f"{size(item.size_bytes)} for the tree that is kept" if item.kept else "no tree is kept"),
    ]
    changes = [line(f"  {text}") for text in item.changes] or [line("  no distribution", "dim")]
    only = [line(""), line("Files that exist nowhere else", "accent"), *_paths(item.only_copies)]
    return [
        *pairs(rows),
        line(""),
        line("Changes", "accent"),
        *changes,
        *(only if item.only_copies else []),
        line(""),
        line(_can(item), "dim"),
    ]


def _can(item: Generation) -> str:
    if item.undo_possible:
        return "u brings the environment back as it was before it."
    if item.redo_possible:
        return "r brings it back."
    if item.state == "done" and not item.live:
        return "u goes back to it, where it led to the live environment and its tree is kept."
    return "Nothing leads to it from the live environment."


def live_of(history: History) -> Generation | None:
    """The generation whose tree is live."""
    return next((item for item in history.generations if item.live), None)


def undo_question(history: History, to: str | None, command: str) -> list[Line]:
    """The effect of an undo."""
    live = live_of(history)
    what = [line(f"  {text}") for text in live.changes] if live is not None and to is None else []
    target = {None: "as it was before the last repair", FOUND: "as envmedic first found it"}.get(
        to, f"as it was after transaction {to}"
    )
    return [
        line(f"{history.prefix} comes back {target}, byte for byte.", "bold"),
        *([line(""), line("This is taken back:"), *what] if what else []),
        line(""),
        line("The present state is kept, and redo brings it back. This takes seconds."),
        line(""),
        line(f"$ {command}", "dim"),
    ]


def redo_question(history: History, item: Generation, command: str) -> list[Line]:
    """The effect of a redo."""
    return [
        line(f"{history.prefix} becomes what the repair of {when(item.started)} made.", "bold"),
        line(""),
        *(line(f"  {text}") for text in item.changes),
        line(""),
        line("It is checked in place, and taken back if it doesn't work. The present state is kept for undo."),
        line(""),
        line(f"$ {command}", "dim"),
    ]


def keep_question(history: History) -> list[Line]:
    """The question how many kept trees stay."""
    kept = [item for item in history.generations if item.kept]
    held = size(sum(item.size_bytes for item in kept))
    return [
        line(f"{len(kept)} tree{'' if len(kept) == 1 else 's'} kept for undo and redo, {held} on disk."),
        line("How many stay, the nearest to the live environment first? 0 removes all."),
    ]


def prune_question(history: History, trees: Collection[KeptTree], command: str) -> list[Line]:
    """The trees that a prune removes; those with files that exist nowhere else are asked about separately."""
    spared = [item.transaction for item in trees if item.only_copies]
    doomed = {item.transaction for item in trees}.difference(spared)
    gone = [item for item in history.generations if item.transaction in doomed]
    freed = size(sum(item.size_bytes for item in gone))
    return [
        line(f"{_trees(len(gone))} will be removed, {freed} freed.", "bold"),
        line(""),
        *(line(f"  {when(item.started)}  {', '.join(item.changes)}") for item in gone),
        *([line(f"{_trees(len(spared))} with files that exist nowhere else: asked next.", "warn")] if spared else []),
        line(""),
        line("There is no way back then. The environment itself is not touched.", "warn"),
        line(""),
        line(f"$ {command}", "dim"),
    ]


def drop_question(spared: Collection[KeptTree]) -> list[Line]:
    """The files that exist in kept trees alone, and that a prune would remove with them."""
    lines = [line(f"Remove {_trees(len(spared))} with files that exist nowhere else?", "bold")]
    for item in spared:
        lines += [line(""), line(f"Only in {item.tree}:", "warn"), *_paths(item.only_copies)]
    return [*lines, line(""), line("y removes them for good (--drop-new), n keeps these trees.", "warn")]


def new_files_question(new: NewFiles) -> list[Line]:
    """The files that an undo can carry over, and those that it cannot."""
    rest = len(new.taken) + len(new.installed)
    stay = f"{rest} more stay behind: the environment that comes back has other files there, or installers made them."
    return [
        line("New since the repair, and not in the environment that comes back:", "bold"),
        *_paths(new.files),
        *([line(stay, "dim")] if rest else []),
        line(""),
        line("y copies them there (--keep-new), n leaves them in the tree that is kept:"),
        line(f"  {new.tree}"),
    ]


def _trees(count: int) -> str:
    return f"{count} kept tree{'' if count == 1 else 's'}"


def _paths(paths: Sequence[str]) -> list[Line]:
    more = len(paths) - _LISTED
    return [
        *(line(f"  {path}") for path in paths[:_LISTED]),
        *([line(f"  and {more} more", "dim")] if more > 0 else []),
    ]


def busy_question(error: EnvmedicError, command: str) -> list[Line]:
    """The programs that run from the environment, and the risk of changing it under them."""
    return [
        line(f"{error.summary}:", "bold"),
        *(line(f"  {text}") for text in error.details),
        line(""),
        line("! They may mix old and new files until they are started again.", "warn"),
        line("  y goes on all the same (--allow in-use).", "warn"),
        line(""),
        line(f"$ {command}", "dim"),
    ]


def loss_lines(losses: Sequence[str]) -> list[Line]:
    """Edits that an undo or redo would hide."""
    return [
        line("Changed since, and not in the other tree:", "bold"),
        *_paths(losses),
        line(""),
        line("The tree that is there now keeps them until it is pruned. Go on?"),
    ]
