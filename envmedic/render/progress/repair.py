"""A running repair: its stage, its progress, its log and its questions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from envmedic.model.events import Event, StageStarted, StepStarted
from envmedic.model.plan import Plan
from envmedic.model.ports import Exchange, ProcessUser
from envmedic.model.record import Record
from envmedic.model.registries.modes import EXCHANGE_METHODS
from envmedic.render.cells import end, pairs, width
from envmedic.render.changes import change_lines
from envmedic.render.documents.plan import plan_lines
from envmedic.render.documents.record import gpu_proof, left_lines, program_lines
from envmedic.render.events import STAGES, amount, event_lines
from envmedic.render.progress.check_table import FAILURES
from envmedic.render.progress.repair_state import Asked, Part, Repair, StageRow
from envmedic.render.style import duration
from envmedic.render.text import Line, TextPart, Tone, bare, line, visible

TITLES: Final[dict[Part, str]] = {
    "probe": "Read the copy",
    "resolve": "Find wheels",
    "solve": "Find conda packages",
    "preflight": "Can it start?",
    "fetch": "Fetch packages",
    "fingerprint": "Fingerprint",
    "clone": "Clone",
    "reproduce": "Checks before",
    "steps": "Repair the copy",
    "verify": "Checks after",
    "ask": "Your answer",
    "compare": "Compare again",
    "exchange": "Swap",
    "smoke": "Checks in place",
    "witness": "Other machines",
    "prune": "Clean up",
    "other": "Settle",
}
UNTOUCHED: Final = "Your environment is untouched: all of this happens in a copy beside it."
IN_PLACE: Final = "The repaired environment is in place and is checked there; the old is kept."
_WHY: Final = {"exe": "runs a program of it", "cwd": "stands in it", "maps": "has its libraries loaded"}
_BAR: Final = 24
_SHOWN_PROCESSES: Final = 8


def clock(seconds: float) -> str:
    """Seconds as ``0:42``, or ``1:02:03``."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


# the head


def head_lines(repair: Repair, now: float, cells: int) -> list[Line]:
    """Its state and current stage, a bar of progress, and the state of the environment: three lines."""
    mark: TextPart
    if repair.asked is not None:
        mark = TextPart("? Waits for your answer", "warn")
    elif repair.running:
        mark = TextPart("■ Stopping", "warn") if repair.stopping else TextPart("▸ Repairing", "accent")
    else:
        mark = TextPart("■ Ended", "bold")
    told = f"  {clock(repair.elapsed(now))}" + (f"  round {repair.round}" if repair.rounds else "")
    if repair.running:
        row = repair.current
        told += "  …" if row is None else f"  {TITLES[row.part]}" + (f": {row.note}" if row.note else "")
    environment = IN_PLACE if repair.state in {"exchanged", "done"} else UNTOUCHED if repair.running else ""
    head = (mark, TextPart(end(visible(told), cells - width(mark.text))))
    return [head, _bar(repair, now, cells), line(end(environment, cells), "good")]


def _bar(repair: Repair, now: float, cells: int) -> Line:
    """The progress of the current stage, as a bar where its end is known."""
    row = repair.current
    if repair.asked is not None:
        return line(end("Nothing happens until you answer; Enter asks again.", cells))
    if row is None:
        return line("")
    done, total, told = _amount(repair, row)
    left = repair.expected_seconds(now)
    # half a second more, since `clock` rounds down
    text = told + (f", about {clock(left + 0.5)} left" if left is not None and left >= 1 else "")
    if not total:
        return line(end(f"{clock(now - row.began)}  {text}".rstrip(), cells), "dim")
    full = round(_BAR * min(done / total, 1.0))
    bar = (TextPart("━" * full, "accent"), TextPart("╌" * (_BAR - full), "dim"))
    return (*bar, TextPart("  " + end(visible(text), max(cells - _BAR - 2, 0))))


def _amount(repair: Repair, row: StageRow) -> tuple[int, int | None, str]:
    """The amounts done and in all, and both in words."""
    if row.part in {"reproduce", "verify", "smoke"}:
        total = repair.expected_checks()
        told = f"{row.outcomes} of {total} checks" if total else f"{row.outcomes} check{'s' * (row.outcomes != 1)}"
        told += f", {row.progress.label}" if row.progress is not None and row.progress.label else ""
        return row.outcomes, total, told
    if row.progress is None:
        return 0, None, ""
    return row.progress.done, row.progress.total, amount(row.progress)


# the parts


def stage_lines(repair: Repair, now: float, cells: int) -> list[Line]:
    """Every stage that began, with its outcome, and those to come; further rounds begin with their reason."""
    lines: list[Line] = []
    shown = 1
    for row in repair.stages:
        while shown < row.round:
            shown += 1
            lines.append(_round_line(repair, shown, cells))
        lines.append(_stage_line(row, now, cells))
    while shown < repair.round:
        shown += 1
        lines.append(_round_line(repair, shown, cells))
    lines += [(TextPart("· " + end(TITLES[part], cells - 2), "dim"),) for part in repair.to_come()]
    return lines + [line(end(f"! {text}", cells), "warn") for text in repair.warnings]


def current_line(repair: Repair) -> int:
    """The place in `stage_lines` of the current stage, or of the last one."""
    return max(len(repair.stages) + repair.round - 2, 0)


def _round_line(repair: Repair, number: int, cells: int) -> Line:
    return line(end(f"Round {number}: {repair.rounds[number - 2]}", cells), "bold")


def _stage_line(row: StageRow, now: float, cells: int) -> Line:
    mark: tuple[str, Tone] = ("▸ ", "accent") if row.running else ("✓ ", "good") if row.ok else ("✗ ", "bad")
    took = clock(now - row.began) if row.running else duration(row.seconds or 0.0)
    name = end(TITLES[row.part], max(cells - 3 - width(took), 4))
    gap = max(cells - 2 - width(name) - width(took), 1)
    return (TextPart(*mark), TextPart(name, "bold" if row.running else "plain"), TextPart(" " * gap + took, "dim"))


# the log


def log_lines(events: Iterable[Event]) -> Iterator[str]:
    """The log of these events: the output of commands, and the work of envmedic."""
    for event in events:
        data = event.data
        if isinstance(data, StageStarted):
            yield f"── {STAGES[data.stage]}"
        yield from map(bare, event_lines(data, 1))
        if isinstance(data, StepStarted):
            yield from (f"    $ {' '.join(argv)}" for argv in data.commands)


# questions


def question_title(asked: Asked) -> str:
    """The title of a question."""
    return "Swap it in?" if isinstance(asked, Exchange) else "Another round?"


def question_lines(asked: Asked, because: str = "") -> list[Line]:
    """A question with all that is needed to answer it."""
    return _exchange_lines(asked) if isinstance(asked, Exchange) else _round_lines(asked, because)


def _round_lines(plan: Plan, because: str) -> list[Line]:
    return [
        line("In the copy there is more to repair. Your environment is untouched.", "bold"),
        *([line(because)] if because else []),
        line("No keeps what was proven so far, if anything was."),
        line(""),
        *plan_lines(plan, alternatives=False),
    ]


def _exchange_lines(asked: Exchange) -> list[Line]:
    record = asked.record
    changes = [item for plan in (record.plan, *record.extensions) for item in plan.changes]
    # the clone is beside the environment: the common directory is named once
    beside = record.plan.real_prefix.rpartition("/")[0] + "/"
    in_one_step = record.exchange == "exchange"
    swap = (
        "both change places in one step"
        if in_one_step
        else next(text for method, text in EXCHANGE_METHODS.items() if method == record.exchange)
    )
    gpu = "" if record.gpu == "not needed" else f"; GPU: {gpu_proof(record)}"
    passed = "repaired and passed every check that could run here"
    done = passed if record.outcome != "partial" else "better, but a part of what was reported remains"
    lines = [
        line(f"The copy is {done}. Your environment is untouched so far.", "bold"),
        *left_lines(record.left),
        *(program_lines(record) if record.program != "not run" else []),
        line(""),
        *pairs(
            [
                ("environment", record.prefix),
                ("repaired copy", asked.tree.removeprefix(beside)),
                ("swap", swap),
                ("for undo", f"the old environment is kept as {record.transaction}"),
                ("checks", _counts(record) + gpu),
            ]
        ),
        *([line(""), *change_lines(changes, indent="")] if changes else []),
        line(""),
        *_processes(asked.processes),
    ]
    return lines + [line(f"! {note}", "warn") for note in record.notes]


def _counts(record: Record) -> str:
    """The outcomes of the checks, counted."""
    before = {item.key: item.status for item in record.checks_before}
    words: dict[str, int] = {}
    for item in record.checks_after:
        # a failure from before the repair is not its fault, and does not decide
        lasting = item.status in FAILURES and before.get(item.key) in FAILURES
        word = {"pass": "passed", "skip": "skipped"}.get(item.status, "fail as before" if lasting else "failed")
        words[word] = words.get(word, 0) + 1
    return ", ".join(f"{count} {word}" for word, count in words.items())


def _processes(users: Sequence[ProcessUser]) -> list[Line]:
    """The processes that run from the environment, and their risk."""
    if not users:
        return [line("✓ No process runs from it.", "good")]
    count = f"{len(users)} processes run" if len(users) > 1 else "1 process runs"
    lines = [line(f"! {count} from it, and may mix old and new files until started again:", "warn")]
    lines += [
        line(f"    {item.pid}  {item.command}  ({_WHY.get(item.why, item.why)})") for item in users[:_SHOWN_PROCESSES]
    ]
    more = len(users) - _SHOWN_PROCESSES
    return lines + ([line(f"    and {more} more")] if more > 0 else [])


def cancel_lines(repair: Repair) -> list[Line]:
    """The effect of stopping now."""
    if not repair.stoppable:
        return [
            line("It is too late to stop: the swap has begun.", "bold"),
            line("The repair comes to its end in a moment. z or `envmedic undo` brings the old environment back."),
        ]
    return [
        line("Stop the repair?", "bold"),
        line("Your environment has not been touched, and stays as it is."),
        line("The copy is thrown away; what was downloaded stays for the next time."),
    ]
