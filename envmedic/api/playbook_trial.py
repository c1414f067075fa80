"""Use case ``playbooks test``: whether a playbook finds its texts among all playbooks, and can prove its repair."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from envmedic.api.context.settings import Settings
from envmedic.api.diagnosis import conclude, diagnose_text
from envmedic.api.playbooks import is_playbook_file, load_playbooks
from envmedic.model.answers.playbook_trial import PlaybookTest, Trial
from envmedic.model.findings import Diagnosis
from envmedic.model.playbook import AdviseStep, CommandStep, LoadedPlaybook, Signature
from envmedic.playbook.matching.atoms import atoms
from envmedic.playbook.matching.match import read_text, scan
from envmedic.playbook.schema.loader import load_file

_PREFIX = "2026-01-31 23:59:59,999 | ERROR | rank 0: "
"""A typical prefix of a log."""
_GAP = [b""] * 3
"""Blank lines after a sample, so that a window ends there."""


def try_playbook(settings: Settings, file: str, logs: Sequence[str]) -> PlaybookTest:
    """Test the playbook in `file` together with all others; it should be the first answer to each of `logs`.

    Raises InvalidPlaybook with every mistake of the file, and InputError for unreadable files.
    """
    # `playbooks test numpy` means a file of that name, never a shipped playbook
    reference = file if is_playbook_file(file) else f"./{file}"
    loaded = load_file(Path(reference), "file")
    others = tuple(item for item in load_playbooks(settings) if item.playbook.id != loaded.playbook.id)
    # a text must lead to this playbook although every other one is tried as well
    every = (*others, loaded)
    trials = (
        *_of_signatures(loaded, every),
        *_of_others(loaded, others, every),
        *_of_repair(loaded),
        *_of_file(loaded),
        *(_answer(f"log {log}", "it", diagnose_text(settings, every, None, log, None), loaded) for log in logs),
    )
    passed = all(trial.status != "fail" for trial in trials)
    return PlaybookTest(playbook=loaded.playbook.id, path=loaded.path, passed=passed, trials=trials)


def _of_signatures(loaded: LoadedPlaybook, every: tuple[LoadedPlaybook, ...]) -> Iterator[Trial]:
    for signature in loaded.playbook.signatures:
        about = f"signature {signature.id}"
        lines = signature.sample.splitlines()
        ours = signature.fix_kind != "not-an-env-problem"
        yield _answer(about, "its sample", _diagnosed(lines, every), loaded, ours=ours)
        lost = [how for how, changed in _changed(lines).items() if not _found(changed, loaded, signature)]
        if lost:
            told = f"its sample is not found {' or '.join(lost)}; let the pattern ask for less around the message"
            yield Trial(about=about, status="note", told=told)
        if atoms(signature.pattern) is None:
            told = "its matches share no text of some length, so every line of every log is tried; add a literal part"
            yield Trial(about=about, status="note", told=told)


def _changed(lines: Sequence[str]) -> dict[str, list[str]]:
    """Return a sample as logs and terminals show it, each form with its name."""
    middle = lines[0].find(" ", len(lines[0]) // 2)
    wrapped = [lines[0][:middle], lines[0][middle + 1 :], *lines[1:]] if middle > 0 else [*lines]
    return {"behind the prefix of a log": [_PREFIX + lines[0], *lines[1:]], "when a terminal wraps it": wrapped}


def _found(lines: Sequence[str], loaded: LoadedPlaybook, signature: Signature) -> bool:
    return any(match.signature == signature.id for match in scan(_encoded(lines), (loaded,)))


def _encoded(lines: Iterable[str]) -> list[bytes]:
    return [line.encode() for line in lines]


def _diagnosed(lines: Sequence[str], every: tuple[LoadedPlaybook, ...]) -> Diagnosis:
    """Return the diagnosis of a text without facts."""
    return conclude(every, None, read_text(_encoded(lines), every), None, None)


def _answer(about: str, what: str, found: Diagnosis, loaded: LoadedPlaybook, *, ours: bool = True) -> Trial:
    """Judge whether the first answer of a diagnosis is the playbook, or (not `ours`) that no environment is at fault.

    The second place is a failure for a log that the user gave, and a note for a sample.
    """
    if not ours or loaded.playbook.fault is None:
        right = found.verdict == "not-an-env-problem"
        first = _first(found)
        told = f"{what} is taken for {found.verdict if right or first is None else first}"
        return Trial(about=about, status="pass" if right else "fail", told=told)
    places = [item.playbook for item in found.findings]
    if loaded.playbook.id not in places:
        told = f"{what} is taken for {places[0] if places else found.verdict}, and this playbook is not found"
        return Trial(about=about, status="fail", told=told)
    place = places.index(loaded.playbook.id)
    own, first_of_all = found.findings[place], found.findings[0]
    if place == 0:
        return Trial(about=about, status="pass", told=f"{what} is found, {own.confidence:.0%} sure: {own.summary}")
    told = f"{what} is taken for {first_of_all.playbook} first ({first_of_all.confidence:.0%} sure), then for this one"
    told += f" ({own.confidence:.0%} sure)"
    return Trial(about=about, status="note" if about.startswith("signature ") else "fail", told=told)


def _of_others(
    loaded: LoadedPlaybook, others: Sequence[LoadedPlaybook], every: tuple[LoadedPlaybook, ...]
) -> Iterator[Trial]:
    """Yield the samples of other playbooks that this one finds too, and whether it becomes their first answer.

    That is no failure if both playbooks have conditions on facts: the facts then decide between them.
    """
    for other in others:
        for signature in other.playbook.signatures:
            lines = signature.sample.splitlines()
            found = scan([*_encoded(lines), *_GAP], (loaded,))
            if not found:
                continue
            diagnosis = _diagnosed(lines, every)
            first, was = _first(diagnosis), _first(_diagnosed(lines, tuple(others)))
            taken = first == loaded.playbook.id
            place = (
                f", and is taken for it in the place of {was or 'what no environment is to blame for'}" if taken else ""
            )
            by_facts = loaded.playbook.when is not None and other.playbook.when is not None
            yield Trial(
                about=f"sample of {other.playbook.id}",
                status="fail" if taken and not by_facts else "note",
                told=f"{found[0].signature} finds that of {signature.id} too{place}"
                + ("; facts tell them apart" if taken and by_facts else ""),
            )


def _first(found: Diagnosis) -> str | None:
    return found.findings[0].playbook if found.findings else None


def _of_repair(loaded: LoadedPlaybook) -> Iterator[Trial]:
    playbook = loaded.playbook
    acting = [step for step in playbook.steps if not isinstance(step, AdviseStep)]
    commands = [" ".join(step.argv) for step in playbook.steps if isinstance(step, CommandStep)]
    if commands:
        told = f"steps of kind command are not carried out: {'; '.join(commands)}; say them in a step of kind advise"
        yield Trial(about="steps", status="fail", told=told)
    if acting and not playbook.checks:
        told = "no check shows the fault and its end; the repair is proven by what worked before alone"
        yield Trial(about="checks", status="note" if playbook.when is not None else "fail", told=told)
    if acting and playbook.when is None:
        told = "no facts confirm the fault: the repair begins only where a check fails in the copy"
        yield Trial(about="when", status="note", told=told)


def _of_file(loaded: LoadedPlaybook) -> Iterator[Trial]:
    if Path(loaded.path).stem != loaded.playbook.id:
        yield Trial(about="file", status="note", told=f"others look for it as {loaded.playbook.id}.yaml")
    if not loaded.playbook.references:
        yield Trial(about="references", status="note", told="nobody can look up what it relies on")
