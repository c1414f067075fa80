"""Ranking of causes: roots before symptoms, fatal errors before warnings."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Final

from envmedic.diagnosis.candidates import ONE_MESSAGE, Cause
from envmedic.model.playbook import NO_TEXT, Failures
from envmedic.model.registries.faults import FAULT_CLASSES, Fault

HARDLY_SURE = 0.6
"""Confidence below which a signature is generic, such as "some library lacks a symbol"."""
_WITHOUT_GPU: Final = "cpu-only-torch"
_OF_NAMED_PACKAGES: Final = "companion-version"
_WORD = re.compile(r"[\w.+-]+")
_Rank = tuple[bool, bool, bool, bool, bool, bool, bool, bool, bool, bool, float, tuple[int, int], float]


def explained(fault: Fault | None, present: frozenset[Fault]) -> bool:
    """Whether `fault` is a symptom of another fault that is present."""
    return any(fault in FAULT_CLASSES[other].symptoms for other in present if other != fault)


def _outdone(reading: Cause, other: Cause) -> bool:
    """Whether `reading` is a generic reading of a message that `other` reads more precisely."""
    if reading.signature is None or other.signature is None:
        return False
    if reading.confidence >= min(other.confidence, HARDLY_SURE):
        return False
    return all(abs(here - there) < ONE_MESSAGE for here, there in zip(reading.line, other.line, strict=True))


def ranked(causes: Sequence[Cause], names: Collection[str] = ()) -> tuple[Cause, ...]:
    """Causes, best first. `rank` has the criteria, the strongest one first.

    `names` are those of what is installed, by which texts and facts show that they speak of one thing.
    """
    sure = [cause for cause in causes if cause.fault is not None and cause.certain and not cause.refuted]
    texts = [cause for cause in sure if cause.signature is not None and not cause.by_form and not _survived(cause)]

    raised = [(cause.fault, cause.line) for cause in sure if cause.fault is not None and cause.raised]

    def present(cause: Cause) -> frozenset[Fault]:
        # a guess explains nothing else
        known = (other for other in sure if not other.by_form and not _outdone(other, cause))
        return frozenset(other.fault for other in known if other.fault is not None)

    def rank(cause: Cause) -> _Rank:
        return (
            cause.refuted,
            cause.fault is None and cause.passing,  # a harmless warning explains no other message
            _survived(cause),
            # what was only warned of explains what was raised, or stands behind it
            cause.fault is not None and cause.passing and not _explains(cause, cause.fault, raised),
            not cause.certain,
            cause.by_form,  # a guess, beside words that are known
            # what was handed in decides, unless facts refute it or show what brings it about
            bool(texts) and cause.signature is None and not any(_may_cause(cause, text, names) for text in texts),
            not cause.confirmed,
            # roots go before symptoms, except a root that is only a generic reading of the same message
            explained(cause.fault, present(cause)),
            cause.passing,
            # rounded: below a tenth the order of the text tells more, since in chains of exceptions, build logs and
            # retries later errors follow from earlier ones
            -round(cause.confidence, 1),
            cause.line,
            -cause.confidence,
        )

    return tuple(sorted(causes, key=rank))


def _may_cause(shown: Cause, text: Cause, names: Collection[str]) -> bool:
    """Whether a fault that facts alone show can be behind `text`: by their classes, or since both name one thing."""
    if shown.fault is None or text.fault is None:
        return False
    by_class = text.fault == shown.fault or text.fault in FAULT_CLASSES[shown.fault].symptoms
    # what packages want of each other and of the program names one of them
    if by_class and text.fault != _OF_NAMED_PACKAGES:
        return True
    told = {word for match in text.matches for word in _subjects(match.line, names)}
    return any(told & _subjects(leaf.text, names) for leaf in shown.evaluation.leaves)


def _subjects(text: str, names: Collection[str]) -> frozenset[str]:
    """What of `names`, and which shared libraries, a text names: as words, or as parts of paths and dotted names."""
    words = frozenset(word.rstrip(".") for word in _WORD.findall(text))
    parts = {part.lower() for word in words for part in (word, *word.split("."))}
    return frozenset(word for word in words if ".so" in word) | {part for part in parts if part in names}


def without_guesses(causes: Sequence[Cause]) -> tuple[Cause, ...]:
    """Return the causes without those of whose text nothing follows unless facts confirm it.

    These are those by forms of sentences, where a signature knows the words of what failed, and those of words that many
    faults share.
    """
    worded = any(_told(cause) for cause in causes)
    return tuple(cause for cause in causes if cause.confirmed or not ((worded and cause.by_form) or cause.by_facts))


def _told(cause: Cause) -> bool:
    """Whether known words tell of a fault for sure, and not in a warning."""
    if cause.fault is None or cause.signature is None or cause.by_form:
        return False
    return cause.certain and not (cause.refuted or cause.passing or _survived(cause))


def _explains(warned: Cause, fault: Fault, raised: Sequence[tuple[Fault, tuple[int, int]]]) -> bool:
    """Whether all that was raised follows from `warned`."""
    follow = FAULT_CLASSES[fault].symptoms | {fault}
    # a program whose GPU does not start goes on without it: a notice of that, after the error, follows from the error
    before = fault == _WITHOUT_GPU
    return all(other in follow and (warned.line <= line or not before) for other, line in raised)


def _survived(cause: Cause) -> bool:
    """Whether it is a fault after which programs go on, so that another error ended this one."""
    return cause.fault is not None and cause.playbook.harmless


def chosen(causes: Sequence[Cause], failures: Failures = NO_TEXT.failures) -> Cause | None:
    """The cause that decides the verdict, from the result of `ranked`; None without one.

    What is no fault of an environment (out of memory, a warning, an interruption) decides only where no fault stands
    and `failures`, those of the text, end in it: a paste often has such lines before, between and after those of the
    failure that was asked about.
    """
    faults = [
        cause
        for cause in causes
        if cause.fault is not None and (not _survived(cause) or failures.failing <= cause.starts)
    ]
    others = [cause for cause in causes if cause.fault is None and cause.certain]
    stated = next((cause for cause in others if _ends(cause, others, failures)), None)
    standing = next((cause for cause in faults if cause.certain and not cause.refuted), None)
    asked = standing or next(iter(faults), None)
    root = next((cause for cause in others if asked is not None and _follows(asked, cause)), None)
    if root is not None:
        return root
    if asked is None:
        doubtful = next((cause for cause in causes if not cause.certain), None)
        return stated or doubtful
    if stated is None:
        return asked
    if asked.by_form and not asked.certain:
        # known words of a failure go before an uncertain guess; those of a notice may stand in any log
        return stated if stated.raised and stated.starts & failures.failing else asked
    if asked.signature is None:
        # The user asked about the text, and a fault that facts alone show beside it does not explain it.
        return stated if stated.confidence >= asked.confidence else asked
    # Programs go on after a warning; an error that they raised later is what ended them.
    survived = standing is None or standing.passing
    ended = stated.raised and stated.line > asked.line
    # one message, read in two ways: what files confirm decides
    shown = stated.confirmed and not asked.confirmed and abs(stated.line[0] - asked.line[0]) < ONE_MESSAGE
    surer = standing is None or (not standing.confirmed and stated.confidence > standing.confidence)
    better_read = shown or (surer and _one_message(stated, asked))
    return stated if (survived and ended) or better_read else asked


def _one_message(one: Cause, other: Cause) -> bool:
    """Whether two causes read one line, or one part of it; what the paths of an error say is of no part."""
    parts = {one.line[1], other.line[1]}
    return one.line[0] == other.line[0] and (len(parts) == 1 or 0 in parts)


def _follows(fault: Cause, root: Cause) -> bool:
    """Whether `fault` is only a consequence of `root`, which is no fault: an index without files that nobody reached."""
    return root.signature is not None and fault.fault in root.signature.symptoms and root.line <= fault.line


def _tells(cause: Cause, number: int, failures: Failures) -> bool:
    """Whether a message of `cause` includes line `number`: one has up to three lines, and ends before another is raised."""
    begins = max((start for start in cause.starts if start <= number < start + ONE_MESSAGE), default=None)
    return begins is not None and sum(begins <= raised <= number for raised in failures.raised) <= 1


def _ends(cause: Cause, others: Sequence[Cause], failures: Failures) -> bool:
    """Whether `cause`, one of the `others` that are no fault, explains the end of a text with `failures`."""
    if max(cause.starts, default=0) <= failures.before:
        return False
    if cause.playbook.harmless or cause.passing:
        # it is all there is to say only where nothing failed, and nothing else was warned of, which may be the failure
        alike = (other for other in others if other.playbook.harmless or other.passing)
        starts = frozenset(line for other in alike for line in other.starts)
        return failures.failing | failures.warned <= starts
    if any(_tells(cause, number, failures) for number in failures.last):
        return True
    if cause.raised:
        return not failures.last
    # from outside: what was killed or interrupted after an error ended because of it, and before one went on
    return cause.starts.issuperset(failures.raised)
