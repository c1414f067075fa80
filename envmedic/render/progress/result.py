"""The result of a repair: before beside after, its locks and the way back; or why nothing was changed."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from envmedic.errors import CHANGED, RECOVERABLE, EnvmedicError
from envmedic.model.lock import Lock
from envmedic.model.plan import CONDA_PINS, CONSTRAINTS, Pin, Plan
from envmedic.model.record import DistributionState, Record
from envmedic.render.cells import middle, padded, width
from envmedic.render.documents.errors import failure_lines
from envmedic.render.documents.lock import incomplete_lines, lock_lines
from envmedic.render.documents.plan import sync_lines
from envmedic.render.documents.record import gpu_proof, left_lines, program_lines, undoing_syncs, until
from envmedic.render.pages.error import error_page
from envmedic.render.progress.check_table import check_table, evidence, rows_of
from envmedic.render.progress.repair_state import Repair
from envmedic.render.style import duration
from envmedic.render.text import Line, TextPart, Tone, line, part, section, visible

_BY_USER = {
    "interrupted": "You stopped it before anything changed places. The copy was thrown away; r makes a new plan.",
    "declined": "You said no. The copy was thrown away; r makes a new plan.",
}
"""Endings that are no errors, by the code of the failure."""
STILL = "Your environment is unchanged, byte for byte as it was."
NO_LOCK = "  No lock was written. l writes one of what was verified."


def result_page(repair: Repair, cells: int) -> list[Line]:
    """The result as a page."""
    result = repair.result
    if result is None:
        return [line("… it is not over yet", "dim")]
    if isinstance(result, EnvmedicError):
        return _refused(result)
    return _repaired(result, repair, cells) if result.failure is None else _failed(result, repair, cells)


def verdict_line(repair: Repair) -> Line:
    """The result in a few words with a mark."""
    result = repair.result
    if isinstance(result, Record) and result.failure is None:
        return (_success(result), TextPart(f"  in {duration(sum(result.seconds.values()))}"))
    failure = result.failure if isinstance(result, Record) else result
    code, environment = (failure.code, failure.environment) if failure is not None else ("", "")
    if environment == RECOVERABLE:
        return line("! Not settled: run `envmedic recover`", "bad")
    if environment == CHANGED:
        return line("! Failed after the swap", "bad")
    word = {"interrupted": "■ Stopped", "declined": "■ Declined"}.get(code, "✗ Not repaired")
    return (TextPart(word, "warn" if word.startswith("■") else "bad"), TextPart("  your environment is unchanged"))


# what succeeded


def _success(record: Record) -> TextPart:
    """How far it is repaired and proven."""
    if record.outcome == "partial":
        return TextPart("! Repaired in part", "warn")
    if record.gpu == "not verified":
        return TextPart("! Repaired, not verified on a GPU", "warn")
    synced = undoing_syncs(record)
    if synced:
        return part(f"! Repaired and verified, {until(synced[0])}", "warn")
    return TextPart("✓ Repaired and verified", "good")


def _repaired(record: Record, repair: Repair, cells: int) -> list[Line]:
    notes = [line(f"  {text}") for text in (*record.regressions, *record.notes)]
    notes += [(part("  "), *row) for item in undoing_syncs(record) for row in sync_lines(item, after=True)]
    back = line("  The old environment is kept. z brings it back, or:")
    locks = [row for found in repair.locks for row in _lock(found)]
    return [
        verdict_line(repair),
        *([line(f"GPU: {gpu_proof(record)}")] if record.gpu != "not needed" else []),
        *left_lines(record.left),
        *program_lines(record),
        *section("Packages", package_lines(record.before, record.after, cells), "accent"),
        *section("Checks", check_table(rows_of(record).values(), cells), "accent"),
        *section("Rounds", _rounds(record), "accent"),
        *section("What you should know", notes, "accent"),
        *section("The way back", [back, _shell(undo_line(record.prefix))], "accent"),
        *section("Locks", locks or [line(NO_LOCK, "dim")], "accent"),
        *section("Constraints that keep it", _constraints((record.plan, *record.extensions), record.prefix), "accent"),
        *section("Record", _record(repair), "accent"),
    ]


def package_lines(before: Sequence[DistributionState], after: Sequence[DistributionState], cells: int) -> list[Line]:
    """Changed packages, before beside after."""
    old, new = ({item.name: item for item in side} for side in (before, after))
    names = [name for name in sorted({*old, *new}) if old.get(name) != new.get(name)]
    rows = [("", "before", "after"), *((name, _told(old.get(name)), _told(new.get(name))) for name in names)]
    sizes = [max(width(visible(row[column])) for row in rows) for column in range(3)]
    # the name gives way, since the versions say what changed
    sizes[0] = max(min(sizes[0], cells - sizes[1] - sizes[2] - 6), 8)
    lines: list[Line] = []
    for number, (name, was, now) in enumerate(rows):
        tones: tuple[Tone, Tone, Tone] = ("dim", "dim", "dim") if number == 0 else ("bold", "bad", "good")
        texts = (padded(middle(visible(name), sizes[0]), sizes[0]), padded(visible(was), sizes[1]), visible(now))
        lines.append((TextPart("  "), *(TextPart(text + "  ", tone) for text, tone in zip(texts, tones, strict=True))))
    same = len(set(old) & set(new)) - sum(name in old and name in new for name in names)
    told = f"{same} package{'s stay' if same != 1 else ' stays'} as before" if names else "no package differs"
    return [*(lines if names else []), line(f"  {told}", "dim")]


def _told(state: DistributionState | None) -> str:
    return "not installed" if state is None else f"{state.version} ({state.owner})"


def _rounds(record: Record) -> list[Line]:
    """The finding of each round and its end, where there were several."""
    if not record.rounds[1:]:  # a single round is the repair itself
        return []
    return [
        (
            TextPart(f"  {item.number}. "),
            TextPart("✗ " if item.failed else "✓ ", "bad" if item.failed else "good"),
            part(f"{item.summary}: {'; '.join(item.failed) or 'repaired'}"),
        )
        for item in record.rounds
    ]


def undo_line(prefix: str) -> str:
    """The command line that brings the old environment back."""
    return shlex.join(["envmedic", "undo", "-p", prefix])


def _shell(text: str) -> Line:
    return (TextPart("  $ ", "dim"), part(text))


def _lock(found: Lock) -> list[Line]:
    """The written file, and its missing entries."""
    written = found.path is not None
    texts = [*lock_lines(found), *incomplete_lines(found, written=written)]
    return [(TextPart("  "), *row) for row in texts]


def _constraints(plans: Sequence[Plan], prefix: str) -> list[Line]:
    pins = [step for plan in plans for step in plan.steps if isinstance(step, Pin)]
    wheels = list(dict.fromkeys(text for step in pins for text in step.constraints))
    conda = list(dict.fromkeys(text for step in pins for text in step.conda))
    lines = [line(f"  {text}") for text in wheels] + [line(f"  {text} (conda)") for text in conda]
    files = [*([CONSTRAINTS] if wheels else []), *([CONDA_PINS] if conda else [])]
    if files:
        return [*lines, *(line(f"  in {prefix}/{name}", "dim") for name in files)]
    return [line("  None were written. `envmedic apply --pin` writes constraints that keep a repair.", "dim")]


def _record(repair: Repair) -> list[Line]:
    lines = (
        [line(f"  {repair.directory}/{name}") for name in ("record.json", "events.jsonl")] if repair.directory else []
    )
    return [*lines, line("  The same from the shell:", "dim"), _shell(repair.line)]


# what did not


def _refused(error: EnvmedicError) -> list[Line]:
    """No transaction began."""
    if error.code in _BY_USER:
        return [line(STILL, "good"), line(_BY_USER[error.code])]
    first = [line(STILL, "good"), line("")] if error.environment not in {RECOVERABLE, CHANGED} else []
    return [*first, *error_page(error)]


def _failed(record: Record, repair: Repair, cells: int) -> list[Line]:
    """The failure, its evidence, and the next step."""
    rows = rows_of(record)
    failure = record.failure
    lines = [verdict_line(repair)]
    if failure is not None:
        told = _BY_USER.get(failure.code)
        lines += [line(""), *([line(told)] if told else failure_lines(failure))]
    return [
        *lines,
        *section("Rounds", _rounds(record), "accent"),
        *section("Checks", check_table(rows.values(), cells) if record.checks_after else [], "accent"),
        *section("What they printed", evidence(rows.values()) if record.checks_after else [], "accent"),
        *section("What you should know", [line(f"  {text}") for text in record.notes], "accent"),
        *section("Kept for you", _record(repair), "accent"),
    ]
