"""Records, the history and differences of two states."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from envmedic.model.pins import LiftedPin, NextSync
from envmedic.model.record import Difference, Generation, History, Left, Record
from envmedic.render.changes import ARROW, NOTHING
from envmedic.render.documents.checks import comparison_lines
from envmedic.render.documents.errors import failure_lines
from envmedic.render.documents.plan import diff_lines, pin_lines, sync_lines
from envmedic.render.style import duration, size
from envmedic.render.text import Cell, Line, TextPart, joined, line, part, section, table, visible

_FAILED_SHOWN = 4
"""Failures of one round that are shown: an import that fails takes dozens of checks with it."""
_CHANGES_SHOWN = 3
"""Changes that a row of the history names; the document has all."""
SHARED = (
    "Its files are shared by hard links: installers replace files, but one that is edited in place changes in the snapshot "
    "too, and `undo` names it (--clone copy shares none)"
)
_BEFORE = {"repair": "before the repair", "install": "before the install", "snapshot": "when the snapshot was taken"}
_BACK = {"repair": "the repair", "install": "what was installed", "snapshot": "what was there before"}
_PATHS_SHOWN = 20
"""Paths of one kind that are listed; the document has all."""


def record_lines(record: Record, *, moved: bool = False) -> list[Line]:
    """The work of a transaction; `moved` says that an undo or redo brought a kept tree back just now."""
    lines = [joined(part("Transaction", "bold"), f"  {record.transaction} on {record.prefix}")]
    moved = moved or record.outcome == "already"
    if record.checks_after and (record.failure is not None or not moved):
        lines += [line(""), *comparison_lines(record.checks_before, record.checks_after)]
    if record.failure is not None:
        lines += [line(""), *failure_lines(record.failure, ("-p", visible(record.prefix)))]
    return [
        *lines,
        *_rounds(record),
        *_changed(record),
        *(line(f"regression: {item}") for item in record.regressions if record.failure is None),
        *(line(f"note: {item}") for item in record.notes),
        *(_kept_worse(record) if record.environment == "installed" else []),
        *(left_lines(record.left) if record.failure is None and record.environment != "installed" else []),
        line(""),
        *_result(record, moved=moved),
    ]


def _kept_worse(record: Record) -> list[Line]:
    """What does not work any more after an install that was wanted all the same."""
    return [line(f"Worse than before: {item.summary}", "warn") for item in record.left]


def left_lines(left: Sequence[Left]) -> list[Line]:
    """The faults that a repair leaves, with the reasons."""
    return [line(f"Not repaired: {item.summary}: {item.why}", "warn" if item.reported else "plain") for item in left]


def _rounds(record: Record) -> list[Line]:
    """The finding of each round and its end, where there were several."""
    if not record.rounds[1:]:  # a single round is the repair itself
        return []
    lines = [line("")]
    for item in record.rounds:
        more = len(item.failed) - _FAILED_SHOWN
        end = "; ".join(item.failed[:_FAILED_SHOWN]) or "repaired"
        end += f"; and {more} more, which --json lists" if more > 0 else ""
        lines.append(line(f"round {item.number}: {item.summary}: {end}"))
    return lines


def _changed(record: Record) -> list[Line]:
    if record.environment == "unchanged":
        return []
    before, after = ({item.name: item.version for item in side} for side in (record.before, record.after))
    if record.environment == "restored":
        # an undo goes from the state after the repair to the one before it
        before, after = after, before
    rows = [
        _move(name, before.get(name), after.get(name))
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name)
    ]
    return [line(""), *table(rows)] if rows else []


def _move(name: str, before: str | None, after: str | None) -> tuple[Cell, ...]:
    """A row of what differs: name, before and after."""
    return part(name, "bold"), part(before or NOTHING, "bad"), ARROW, part(after or "removed", "good")


def _result(record: Record, *, moved: bool) -> list[Line]:
    """The state of the environment in a word, how long it took, and the way back."""
    # made visible before it is quoted: shlex.quote keeps control characters
    head, target = part("Environment", "bold"), shlex.quote(visible(record.prefix))
    if record.outcome == "snapshot" and record.state == "done":
        return [
            joined(
                part("Snapshot", "bold"), "     ", part("kept", "good"), f" in {duration(sum(record.seconds.values()))}"
            ),
            *([line(SHARED)] if record.clone == "link" else []),
            _way("To go back to it: ", f"envmedic undo -p {target} {record.transaction}"),
        ]
    if record.environment == "unchanged":
        already = record.plan.purpose == "install" and record.failure is None
        return [joined(head, "  ", part("unchanged: all of it is there already" if already else "unchanged", "warn"))]
    if record.environment == "restored":
        purpose = record.plan.purpose
        lines = [joined(head, "  ", part(f"back as it was {_BEFORE[purpose]}", "good")), *_project(record)]
        return (
            lines
            if record.failure
            else [*lines, _way(f"To bring {_BACK[purpose]} back: ", f"envmedic redo -p {target}")]
        )
    if record.environment == "installed":
        how = "brought back" if moved else f"installed and checked in {duration(sum(record.seconds.values()))}"
        state = part(how, "warn" if record.left else "good")
        syncs = (row for item in undoing_syncs(record) for row in sync_lines(item, after=True))
        return [joined(head, "  ", state), *syncs, _way("To go back: ", f"envmedic undo -p {target}")]
    proven = record.gpu != "not verified"
    state = part("repaired and verified", "good") if proven else part("repaired", "warn")
    if record.outcome == "partial":
        state = part("repaired in part", "warn")
    if record.outcome == "already":
        how = " before, and unchanged since: nothing was done"
    else:
        how = ", brought back" if moved else f" in {duration(sum(record.seconds.values()))}"
    synced = undoing_syncs(record)
    how += f", {until(synced[0])}" if synced else ""
    return [
        joined(head, "  ", state, how),
        *([joined(part("GPU", "bold"), f"          {gpu_proof(record)}")] if record.gpu != "not needed" else []),
        *_machines(record),
        *_project(record),
        *program_lines(record, moved=moved),
        *pin_lines(_lifted(record)),
        *(row for item in synced for row in sync_lines(item, after=True)),
        _way("To go back: ", f"envmedic undo -p {target}"),
    ]


def _machines(record: Record) -> list[Line]:
    """Which other machines have proved it, and which were asked for programs alone."""
    proved = [item.machine for item in record.witnesses if item.proved]
    others = [item.machine for item in record.witnesses if not item.proved]
    told = [f"proven on {', '.join(proved)} too"] if proved else []
    told += [f"{', '.join(others)} asked for programs that use it"] if others else []
    return [joined(part("Machines", "bold"), "     ", "; ".join(told))] if told else []


def _way(label: str, command: str) -> Line:
    """A command to type, after its label."""
    return (TextPart(label), TextPart(command, "command"))


def program_lines(record: Record, *, moved: bool = False) -> list[Line]:
    """How the user's program ended, or how it is run."""
    target = shlex.quote(visible(record.prefix))
    if record.program != "not run":
        said = next((item.reason for item in record.checks_after if item.program == "failed elsewhere"), record.program)
        return [joined(part("Program", "bold"), f"      {said}")]
    if moved:
        return []
    return [
        joined(part("Program", "bold"), "      your program was not run. To run it and repair what fails:"),
        _way("  ", f"envmedic run -p {target} -- CMD"),
        _way("  ", f"envmedic apply --last -p {target}"),
    ]


def until(sync: NextSync) -> str:
    """How long a repair lasts beside the project's tool."""
    command = f"the next `{shlex.join(sync.command)}`"
    return f"until {command}" if sync.known else f"and {command} may undo it"


def _project(record: Record) -> list[Line]:
    """What became of manifest and lock of the project; of those that were left, what differs."""
    edit = (record.plan, *record.extensions)[-1].project_edit
    if not record.project or edit is None:
        return []
    names = " and ".join(item.name for item in edit.files)
    told = {
        "edited": f"{names} in {edit.folder} agree with the repair",
        "restored": f"{names} in {edit.folder} are as they were before the repair",
        "left": f"{names} in {edit.folder} stay as they are, since they were edited after the plan was made",
    }
    if record.project == "left" and record.environment == "restored":
        told["left"] = (
            f"{names} in {edit.folder} stay as they are, since they were edited after the repair; "
            "the project's next sync installs what they say"
        )
    lines = [joined(part("Project", "bold"), "      ", told[record.project])]
    for item in record.project_left:
        if item.since:
            lines += [line(f"  {item.name}: edited since the repair", "warn"), *diff_lines(item.since)]
        lines += [line(f"  {item.name}: what was not done", "warn"), *diff_lines(item.left_out)]
    return lines


def _lifted(record: Record) -> Iterator[LiftedPin]:
    """The pins that the repair does not keep, and that still stand in their files."""
    plans = (record.plan, *record.extensions)
    edit = plans[-1].project_edit if record.project == "edited" else None
    written = {f"{edit.folder}/{item.name}" for item in edit.files} if edit is not None else set()
    for pin in (pin for plan in plans for pin in plan.lifted):
        if pin.source.partition(":")[0] not in written:
            yield pin


def undoing_syncs(record: Record) -> list[NextSync]:
    """The syncs of the project that would undo a part of the repair."""
    if record.project == "edited":
        return []
    found = (plan.next_sync for plan in (record.plan, *record.extensions))
    return [item for item in found if item is not None and item.undoes]


def gpu_proof(record: Record) -> str:
    """Whether the repair was verified on a GPU, and the reason where it was not."""
    return record.gpu + (f" ({record.gpu_reason})" if record.gpu_reason else "")


def history_lines(history: History) -> list[Line]:
    """Generations, newest first."""
    if not history.generations:
        return [line(f"No transaction of envmedic on {history.prefix}")]
    rows = [("", "transaction", "state", "started", "changes", "keeps", "can")]
    for item in history.generations:
        can = " ".join(word for word, yes in (("undo", item.undo_possible), ("redo", item.redo_possible)) if yes)
        # a fourth change is named itself, where "1 more" would stand
        more = len(item.changes) - _CHANGES_SHOWN if len(item.changes) > _CHANGES_SHOWN + 1 else 0
        shown = [*item.changes[:_CHANGES_SHOWN], f"{more} more"] if more else item.changes
        mark, changes = "*" if item.live else "", headed(item, ", ".join(shown)) or "-"
        rows.append((mark, item.transaction, item.state, item.started, changes, size(item.size_bytes), can or "-"))
    return [
        joined(part("Generations (* is live)", "bold"), f", {size(history.size_bytes)} on disk"),
        *table(rows),
        *(text for item in history.generations for text in _only_copies(item)),
    ]


def headed(item: Generation, changes: str) -> str:
    """The changes of a generation behind the user's own words for it."""
    own = f"snapshot: {item.text}" if item.text and item.purpose == "snapshot" else item.text
    head = own or ("snapshot" if item.purpose == "snapshot" else "")
    return f"{head} ({changes})" if head and changes else head or changes


def _only_copies(item: Generation) -> list[Line]:
    """The files that only a kept tree has."""
    if not item.only_copies:
        return []
    more = len(item.only_copies) - _PATHS_SHOWN
    return [
        line(f"Only in {item.tree}:", "warn"),
        *(line(f"  {path}") for path in item.only_copies[:_PATHS_SHOWN]),
        *([line(f"  and {more} more")] if more > 0 else []),
    ]


def difference_lines(found: Difference) -> list[Line]:
    """The differences of two states: distributions, then files."""
    rows = [_move(item.name, item.before, item.after) for item in found.distributions]
    lines = [
        joined(part("From", "bold"), f" {_state(found.before)} ", part("to", "bold"), f" {_state(found.after)}"),
        line(""),
        *(table(rows) if rows else [line("No distribution differs")]),
    ]
    for word, paths in (("added", found.added), ("removed", found.removed), ("changed", found.changed)):
        more = [line(f"  and {len(paths) - _PATHS_SHOWN} more")] if len(paths) > _PATHS_SHOWN else []
        listed = [line(f"  {path}") for path in paths[:_PATHS_SHOWN]]
        lines += section(f"{len(paths)} file{'' if len(paths) == 1 else 's'} {word}", [*listed, *more])
    if not found.files_compared:
        lines += [
            line(""),
            line("Files are not compared: their list was removed with the tree of one of the two", "warn"),
        ]
    elif not (found.added or found.removed or found.changed):
        lines += [line(""), line("No file differs, caches of byte code apart")]
    return lines


def _state(name: str) -> str:
    """A state of an environment in words."""
    return {"found": "the environment as it was found", "now": "the environment as it is now"}.get(name, name)
