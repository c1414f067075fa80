"""A diagnosis: its verdict in a sentence, the proof, the repair, and the next command."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable

from msgspec.structs import replace

from envmedic.model.findings import Diagnosis, Evidence, Finding, Obstacle, RepairOutlook
from envmedic.render.documents.disagreement import Refusal, disagreement_table, refusals
from envmedic.render.next_command import aimed
from envmedic.render.style import size
from envmedic.render.text import ELLIPSIS, Line, TextPart, Tone, joined, line, part, section, shortened, visible

EVIDENCE_LENGTH = 240
LIKELY, CERTAIN = 0.9, 0.8
"""Confidence from which a finding is likely without facts, and certain with them."""
_QUOTED_CELLS = 64
"""Characters of a quoted line of the text, so that the marks below it stay below it on a narrow terminal."""
_FACTS_SHOWN = 3
_TEXTS_SHOWN = 1
_SHOWN_CHARACTERS = 120
_MARKED: dict[str, tuple[str, Tone]] = {
    "healthy": ("✓ no fault found", "good"),
    "host": ("! fault of the host", "bad"),
    "shell": ("! variable of the shell", "bad"),
    "not-an-env-problem": ("· not the environment", "dim"),
    "unknown": ("? nothing sure", "warn"),
}
_SENTENCES: dict[str, tuple[str, Tone, str]] = {
    "healthy": ("✓", "good", "No fault found in this environment"),
    "env": ("✗", "bad", "This environment is broken"),
    "host": ("✗", "bad", "This machine is at fault, not the environment"),
    "shell": ("✗", "bad", "A setting of your shell is at fault, not the environment"),
    "not-an-env-problem": ("·", "accent", "Not an environment problem"),
    "unknown": ("?", "warn", "Not recognised by any playbook"),
}
_MARKS: dict[bool | None, tuple[str, Tone]] = {True: ("✗", "bad"), False: ("-", "dim"), None: ("?", "warn")}


def diagnosis_lines(diagnosis: Diagnosis, repair: str = "", *, detail: bool = False) -> list[Line]:
    """The verdict as a sentence, its proof, the repair, and the next command: `repair`, else a plan.

    Without `detail` only the best finding has its proof, and of that the first few facts.
    """
    diagnosis = _with_environment(diagnosis)
    first = diagnosis.findings[0] if diagnosis.findings else None
    mark, tone, sentence = headline(diagnosis)
    lines = [joined(part(f"{mark} ", tone), part(sentence, "bold")), *reasons(diagnosis)]
    if first is not None:
        lines += _best(diagnosis, first, detail=detail)
    found = [row for item in diagnosis.findings[1:] for row in _other(item, detail=detail)]
    lines += section("Also found" if diagnosis.verdict != "unknown" else "Other guesses", found)
    environment = diagnosis.facts.environment if diagnosis.facts else None
    # every repair is proven by checks that the environment's own Python runs
    python = environment.interpreter if environment is not None else None
    if python is not None and diagnosis.findings and not python.starts and python.replacement is None:
        reason = python.error or "for no stated reason"
        return [
            *lines,
            line(""),
            line(f"Its Python does not start: {reason}", "bad"),
            line("Nothing can be repaired before it does."),
        ]
    in_the_way = obstacle_lines(diagnosis.obstacles)
    lines += [*([line("")] if in_the_way else []), *in_the_way]
    lines += _footnote(first) if first is not None and not detail else []
    return [*lines, *_next(diagnosis, repair)]


def _with_environment(diagnosis: Diagnosis) -> Diagnosis:
    """`diagnosis` with the environment in the commands of its advice, which are then right in any shell."""
    target = ("-p", visible(diagnosis.prefix)) if diagnosis.prefix else ()
    findings = (replace(item, advice=tuple(aimed(text, target) for text in item.advice)) for item in diagnosis.findings)
    return replace(diagnosis, findings=tuple(findings), advice=tuple(aimed(text, target) for text in diagnosis.advice))


def headline(diagnosis: Diagnosis) -> tuple[str, Tone, str]:
    """A mark with its tone, and the verdict in a sentence: of a fault the two versions that disagree, where they do."""
    first = diagnosis.findings[0] if diagnosis.findings else None
    if diagnosis.verdict == "env" and first is not None:
        mark, tone = mark_of(first)
        refused = refusal_of(diagnosis)
        if refused is None:
            return mark, tone, first.summary
        return mark, tone, f"{refused.name} {refused.version} does not work with torch {refused.torch}"
    mark, tone, sentence = _SENTENCES[diagnosis.verdict]
    if diagnosis.verdict == "not-an-env-problem":
        told = diagnosis.reason
    elif diagnosis.verdict == "unknown":
        told = f"best guess: {first.summary} ({first.confidence:.0%})" if first is not None else None
        disputed = first is not None and first.guessed and any(item.playbook for item in diagnosis.findings)
        sentence = "Nothing sure" if disputed else sentence
    else:
        told = first.summary if first is not None else None
    return mark, tone, f"{sentence}: {told}" if told else sentence


def mark_of(finding: Finding) -> tuple[str, Tone]:
    """A mark with its tone: confirmed, refuted, undecided, or there without anything that is known to fail by it."""
    return ("!", "warn") if finding.latent else _MARKS[finding.confirmed]


def refusal_of(diagnosis: Diagnosis) -> Refusal | None:
    """The distribution that is for another torch and that the best finding is about; None where it is about others."""
    if not diagnosis.findings or diagnosis.facts is None or diagnosis.findings[0].latent:
        return None
    first = diagnosis.findings[0]
    told = " ".join([first.summary, *(item.summary for item in first.consequences)])
    told += " ".join(item.what for item in first.evidence if item.kind == "fact")
    return next((item for item in refusals(diagnosis.facts.environment) if item.name in told), None)


def reasons(diagnosis: Diagnosis) -> list[Line]:
    """What stands behind the verdict beside its findings, and what it says nothing about."""
    reason = diagnosis.reason if diagnosis.verdict != "not-an-env-problem" else None
    return [
        *([line(f"  {reason}")] if reason else []),
        *([line("  No repair of an environment can help with that.")] if diagnosis.verdict == "host" else []),
        *(line(f"  {text}") for text in diagnosis.origin),
        *(line(f"  {text}") for text in diagnosis.advice),
        *(
            line(f"  besides, no fault: {item.reason} ({item.text.strip()[:_SHOWN_CHARACTERS]})")
            for item in diagnosis.also
        ),
        *_coverage(diagnosis),
        *(line(f"  the project differs: {text}", "warn") for text in diagnosis.differs),
    ]


def _best(diagnosis: Diagnosis, finding: Finding, *, detail: bool) -> list[Line]:
    """The best finding: who disagrees, what it is, the proof, and its repair."""
    refused = refusal_of(diagnosis)
    environment = diagnosis.facts.environment if diagnosis.facts is not None else None
    lines: list[Line] = []
    if refused is not None and environment is not None:
        lines += [line(""), *disagreement_table(environment, refused), line(""), line(f"  {finding.summary}")]
    lines += _proof(finding, diagnosis.log, detail=detail)
    # what the verdict says is to be done stands above
    lines += [line(f"  {text}") for text in finding.advice if text not in diagnosis.advice]
    if detail:
        lines += _detail(finding)
    return [*lines, *(_outlook(diagnosis.repair) if diagnosis.repair is not None else [])]


def _proof(finding: Finding, log: str | None, *, detail: bool) -> list[Line]:
    """Lines of the text with the words that matched underlined, then facts."""
    texts = [item for item in finding.evidence if item.kind == "text"]
    facts = seen_facts(finding)
    shown = texts if detail else texts[:_TEXTS_SHOWN]
    lines = [
        row
        for item in shown
        for row in ([line("")] if item is shown[0] else []) + _quoted(item, finding, log, whole=detail)
    ]
    few = facts if detail else facts[:_FACTS_SHOWN]
    if few:
        lines += [line(""), *(evidence_line(item, "  ", EVIDENCE_LENGTH) for item in few)]
    more = len(facts) - len(few)
    return lines + ([line(f"    and {more} more fact{'s' * (more > 1)} (-v)", "dim")] if more else [])


def _quoted(item: Evidence, finding: Finding, log: str | None, *, whole: bool) -> list[Line]:
    """A line of the text, and marks under the words by which it was recognised; of a long one the part around them."""
    number = item.where.partition(":")[2]
    # a file has a name; what a command printed has none
    name = visible(os.path.basename(log or ""))  # noqa: PTH119  # a name that need not be a path
    named = name.strip("-") and " " not in name and len(name) <= _QUOTED_CELLS // 2
    label = f"    {name}:{number}  " if named else f"    line {number}  "
    text = visible(item.what).strip()
    words = max((visible(group) for group in finding.groups.values() if group), key=len, default="")
    at = text.find(words) if words else -1
    if at < 0 or len(words) > _QUOTED_CELLS or (whole and len(text) > _QUOTED_CELLS):
        return [joined(part(label, "dim"), TextPart(shortened(text, EVIDENCE_LENGTH)))]
    # a window around the words: a line that is wrapped would lose its marks
    start = max(min(at - 8, len(text) - _QUOTED_CELLS), 0) if at + len(words) > _QUOTED_CELLS else 0
    before, rest = text[start:at], text[at + len(words) : start + _QUOTED_CELLS]
    before = ELLIPSIS + before if start else before
    end = ELLIPSIS if start + _QUOTED_CELLS < len(text) else ""
    return [
        (TextPart(label, "dim"), TextPart(before), TextPart(words, "bad"), TextPart(rest + end)),
        (TextPart(" " * (len(label) + len(before))), TextPart("^" * len(words), "bad")),
    ]


def _detail(finding: Finding) -> list[Line]:
    """What follows from it, other ways to repair it, and what it is not."""
    return [
        *section("Follows from it", [line(f"  - {item.fault}: {item.summary}") for item in finding.consequences]),
        *section(
            "Other ways to repair it",
            [line(f"  - {item.title}. {item.why_not}".rstrip()) for item in finding.alternatives],
        ),
        *section(
            "Considered and rejected",
            [line(f"  - {item.fault} ({item.signature}): {item.reason}") for item in finding.rejected],
        ),
        line(""),
        line(f"  {finding.fault} · {sureness(finding)}" + (f" · playbook {finding.playbook}" if finding.playbook else "")),
    ]  # fmt: skip


def _other(finding: Finding, *, detail: bool) -> list[Line]:
    """A finding below the best one."""
    mark, tone = mark_of(finding)
    lines = [
        joined(part(f"  {mark} ", tone), finding.summary),
        joined("    ", part(f"{finding.fault} · {sureness(finding)}", "dim")),
        *(line(f"    {text}") for text in finding.advice),
    ]
    if not detail:
        return lines
    seen = (*(item for item in finding.evidence if item.kind == "text"), *seen_facts(finding))
    told = [evidence_line(item, "    ", EVIDENCE_LENGTH) for item in seen]
    ways = [line(f"    or: {item.title}. {item.why_not}".rstrip()) for item in finding.alternatives]
    follows = [line(f"    from it follows: {item.fault}: {item.summary}") for item in finding.consequences]
    return [*lines, *told, *follows, *ways]


def outlook_line(outlook: RepairOutlook) -> Line:
    """What the repair will change, as far as the tables and the files tell without asking an index."""
    moves: list[TextPart] = []
    for item in outlook.moves:
        moves += [part(", " if moves else ""), part(f"{item.name} "), part(f"{item.before or 'none'}", "bad"),
                  part(" → "), part(item.after or "removed", "good")]  # fmt: skip
    more = f" and {outlook.more} more" if outlook.more else ""
    stays = f"; torch stays {outlook.torch}" if outlook.torch else ""
    cost = f"; replaces {size(outlook.replaced_bytes)}" if outlook.replaced_bytes else ";"
    what = moves or [part(outlook.title)]
    return joined(*what, f"{more}{stays}", part(f"{cost} in a copy; undo goes back", "dim"))


def _outlook(outlook: RepairOutlook) -> list[Line]:
    return [line(""), joined(part("  Repair  ", "bold"), *outlook_line(outlook))]


def _footnote(first: Finding) -> list[Line]:
    """The name of the fault, how sure it is, and where more of it stands."""
    topic = first.playbook or first.fault
    ways = len(first.alternatives)
    more = f"; {ways} other way{'s' * (ways != 1)} to repair it with -v" if ways else ""
    return [
        line(""),
        line(f"{first.fault} · {sureness(first)}{more}", "dim"),
        joined(part("In plain words: ", "dim"), part(f"envmedic explain {topic}", "command")),
    ]


def obstacle_lines(obstacles: Iterable[Obstacle]) -> list[Line]:
    """What is in the way of a repair, with what to do about it."""
    return [row for item in obstacles for row in (line(f"! {item.text}", "warn"), line(f"  {item.hint}"))]


def _coverage(diagnosis: Diagnosis) -> list[Line]:
    """What a clean bill of health rests on, and what it says nothing about."""
    if diagnosis.verdict != "healthy":
        return []
    return [
        line(f"  looked at:      {'; '.join(diagnosis.examined)}"),
        line(f"  not looked at:  {'; '.join(diagnosis.unexamined)}"),
    ]


def next_command(diagnosis: Diagnosis, repair: str = "") -> str:
    """The command that goes on: `repair`, else a plan; empty where none helps."""
    best = diagnosis.findings[0] if diagnosis.findings else None
    if best is None or best.playbook is None or diagnosis.verdict != "env" or best.confirmed is False:
        return ""
    # a plan of advice alone would only repeat what is shown already
    if best.advice and (not best.latent or best.fix_kind == "other"):
        return ""
    target = ["-p", diagnosis.prefix] if diagnosis.prefix else []
    return repair or shlex.join(["envmedic", "plan", "--playbook", best.playbook, *target])


def _next(diagnosis: Diagnosis, repair: str) -> list[Line]:
    """The next command, or the question whether this is the right environment."""
    best = diagnosis.findings[0] if diagnosis.findings else None
    # facts refute what the text says: most likely the text is from another environment
    if best is not None and best.confirmed is False and diagnosis.prefix and diagnosis.log:
        question = f"Is {diagnosis.prefix} the environment that the program ran in? -p names another one"
        return [line(""), line(question, "warn")]
    command = next_command(diagnosis, repair)
    if command and not (diagnosis.prefix or repair):
        # of a text alone: a plan would have no environment to be made for
        return [
            line(""),
            line("To confirm it and plan a repair, name the environment with -p; `envmedic envs` lists them."),
        ]
    return [line(""), joined(part("Next: ", "bold"), part(command, "command"))] if command else []


def sureness(finding: Finding) -> str:
    """How sure it is, in words, and why; JSON has the number."""
    texts = any(item.kind == "text" and item.supports for item in finding.evidence)
    facts = sum(item.supports for item in seen_facts(finding))
    if finding.guessed:
        return "a guess by the words of the text alone"
    if finding.confirmed is False:
        return "unlikely: facts speak against it"
    if finding.confirmed is None:
        return f"{'likely' if finding.confidence >= LIKELY else 'possible'}: the text says so, facts cannot tell"
    sure = "certain" if finding.confidence >= CERTAIN else "likely"
    counted = f"{facts} fact{'s' * (facts != 1)}"
    if texts and facts:
        told = f"the text and {counted} agree"
    else:
        told = f"{counted} show{'s' * (facts == 1)} it" if facts else "facts confirm it"
    if finding.latent:
        told += "; the text names it" if finding.named else "; nothing is known to fail by it"
    return f"{sure}: {told}"


def seen_facts(finding: Finding) -> list[Evidence]:
    """The facts for and against it, those that say the same once."""
    return list({item.told: item for item in reversed(finding.evidence) if item.kind == "fact"}.values())[::-1]


def evidence_line(evidence: Evidence, indent: str, length: int | None = None) -> Line:
    """Source and content, cut to `length` characters. Of a fact, whose name only authors of playbooks know, the content."""
    mark = part(f"{indent}+ ", "good") if evidence.supports else part(f"{indent}- ", "bad")
    what = evidence.told if length is None else shortened(evidence.told, length)
    if evidence.kind == "fact":
        return joined(mark, what)
    return joined(mark, part(f"{evidence.where}  ", "dim"), what)


def verdict_of(diagnosis: Diagnosis) -> tuple[str, Tone]:
    """The verdict in a few words with a mark; of faults the first."""
    if diagnosis.verdict != "env":
        return _MARKED[diagnosis.verdict]
    first, *others = diagnosis.findings
    more = f" +{len(others)}" if others else ""
    if first.latent:  # the list begins with what a program has failed by
        return f"! {first.fault}{more}", "warn"
    return (f"✗ {first.fault}{more}", "bad") if first.confirmed else (f"? {first.fault}{more}", "warn")
