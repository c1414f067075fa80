"""Explanation of a class of fault or a playbook."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

import msgspec

from envmedic.errors import InputError
from envmedic.explain import terms
from envmedic.explain.words import check_line, condition_lines, step_line
from envmedic.model.answers.explanation import Explanation, PlaybookTitle, Sign, Term
from envmedic.model.playbook import LoadedPlaybook, Playbook, Signature
from envmedic.model.registries.faults import FAULT_CLASSES, FAULTS, Fault
from envmedic.model.vocabulary.names import fact_kind
from envmedic.playbook.matching.patterns import compiled
from envmedic.playbook.schema.template import fill, placeholders

SHOWN_SIGNS = 6
"""Limit on the messages that are shown, by confidence."""
_OF_TEXT = "what the error text says, or what the playbook makes of it"


def explain(topic: str, playbooks: Sequence[LoadedPlaybook]) -> Explanation:
    """The page on `topic`, the id of one of `playbooks` or a class of fault. Raises `InputError` for neither."""
    chosen = next((item.playbook for item in playbooks if item.playbook.id == topic), None)
    fault = next((known for known in FAULTS if known == topic), None)
    # a playbook before a class of the same name: its page has the signs and steps, and lists the class's other
    # playbooks
    if chosen is not None:
        others = () if fault is None else _titles(fault, playbooks, without=topic)
        found = msgspec.structs.replace(_of_playbook(chosen), playbooks=others)
    elif fault is not None:
        found = _of_fault(fault, playbooks)
    else:
        raise _unknown(topic, playbooks)
    # placeholders first: the repair steps cannot be read without them
    words = (*_filled_in((*found.repair, *found.alternatives)), *terms.used(_texts(found)))
    return msgspec.structs.replace(found, terms=words)


def _unknown(topic: str, playbooks: Sequence[LoadedPlaybook]) -> InputError:
    known = sorted({*FAULTS, *(item.playbook.id for item in playbooks)})
    near = difflib.get_close_matches(topic, known, n=3, cutoff=0.5)
    return InputError(
        f"There is no fault and no playbook {topic!r}",
        cause=f"did you mean {' or '.join(near)}?" if near else None,
        hint="`envmedic playbooks list` has all of them, by fault",
    )


def _of_playbook(playbook: Playbook) -> Explanation:
    page = FAULT_CLASSES[playbook.fault] if playbook.fault is not None else None
    return Explanation(
        topic=playbook.id,
        kind="playbook",
        fault=playbook.fault,
        title=playbook.title,
        what=page.what if page is not None else playbook.title,
        why=playbook.explain,
        proof=tuple(check_line(name) for name in playbook.checks),
        signs=_signs(playbook),
        confirmed_by=tuple(condition_lines(playbook.when)) if playbook.when is not None else (),
        repair=tuple(step_line(step) for step in playbook.steps),
        alternatives=playbook.alternatives,
        references=playbook.references,
    )


def _signs(playbook: Playbook) -> tuple[Sign, ...]:
    surest = sorted(playbook.signatures, key=lambda signature: -signature.confidence)[:SHOWN_SIGNS]
    return tuple(Sign(signature=item.id, message=item.sample, meaning=_meaning(item, playbook)) for item in surest)


def _meaning(signature: Signature, playbook: Playbook) -> str:
    """The summary of a signature with the groups that its own sample matches."""
    # patterns work on bytes, since logs need not be UTF-8
    found = compiled(signature.pattern).search(signature.sample.encode())
    groups = found.groupdict() if found is not None else {}
    texts = {_decoded(name): _decoded(value) for name, value in groups.items() if value is not None}
    return fill(signature.summary or playbook.title, texts)


def _decoded(text: bytes | str) -> str:
    return text.decode("utf-8", "replace") if isinstance(text, bytes) else text


def _of_fault(fault: Fault, playbooks: Sequence[LoadedPlaybook]) -> Explanation:
    page = FAULT_CLASSES[fault]
    own = [item.playbook for item in playbooks if item.playbook.fault == fault]
    # several playbooks of a class cite the same issue
    references = dict.fromkeys(url for playbook in own for url in playbook.references)
    return Explanation(
        topic=fault,
        kind="fault",
        fault=fault,
        title=page.title,
        what=page.what,
        why=page.why,
        proof=page.proof,
        signs=tuple(sign for playbook in own for sign in _signs(playbook)[:2])[:SHOWN_SIGNS],
        playbooks=_titles(fault, playbooks),
        references=tuple(references),
    )


def _titles(
    fault: Fault, playbooks: Sequence[LoadedPlaybook], *, without: str | None = None
) -> tuple[PlaybookTitle, ...]:
    own = (item.playbook for item in playbooks if item.playbook.fault == fault and item.playbook.id != without)
    return tuple(PlaybookTitle(id=playbook.id, title=playbook.title) for playbook in own)


def _filled_in(texts: Sequence[str]) -> tuple[Term, ...]:
    """The placeholders in braces, which a plan replaces by facts."""
    # up to the semicolon: the rest of a fact's description is for authors of playbooks
    kinds = ((name, fact_kind(name)) for name in placeholders("\n".join(texts)))
    return tuple(
        Term(term=f"{{{name}}}", meaning=_OF_TEXT if kind is None else kind.doc.partition("; ")[0])
        for name, kind in kinds
    )


def _texts(found: Explanation) -> tuple[str, ...]:
    return (found.title, found.what, found.why, *found.proof, *found.repair, *found.alternatives)
