"""The side of the repair: ask the other machines, wait for all of them, and stop where one has something against it.

`use` is asked before anything is done and once more right before the exchange, `proof` when the copy has passed its
checks here, `look` when it is in its place: what fails there exchanges the trees back.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from envmedic.engine.store.context import OpenTransaction
from envmedic.engine.store.live_records import live_records
from envmedic.engine.witness import questions
from envmedic.errors import ChecksFailed, EnvironmentBusy, EnvmedicError
from envmedic.model.answers.witness import Witness, WitnessAnswer, WitnessQuestion
from envmedic.model.checks import Check, Outcome
from envmedic.tree import fingerprint as tree

_POLL_S = 0.2


def ask_use(transaction: OpenTransaction) -> None:
    """Ask which programs use the environment. Raises EnvironmentBusy where some do, ChecksFailed where one is silent."""
    if _machines(transaction):
        _required(transaction, _question(transaction, "use"))


def prove(transaction: OpenTransaction, checks: Sequence[Check], before: Sequence[Outcome]) -> None:
    """Have the witnesses run `checks` in the repaired copy, and ask for programs again. Raises as `ask_use` does.

    `before` are the outcomes of what shows the fault, before the steps.
    """
    if not _machines(transaction):
        return
    question = _question(transaction, "proof", digest=_digest(transaction), checks=tuple(checks), before=tuple(before))
    found = _required(transaction, question)
    if _digest(transaction) != question.digest:
        raise ChecksFailed(
            "The repaired copy has changed while the other machines looked at it",
            cause="Something wrote into it, so what they proved is not what would take the environment's place",
            hint="Run the same command again",
        )
    _note_gpus(transaction, [found[name] for name in question.witnesses])
    ask_use(transaction)


def look(transaction: OpenTransaction, checks: Sequence[Check]) -> EnvmedicError | None:
    """Have the witnesses run `checks` in the environment in its place, which all machines have to see.

    Returns why it cannot stay there, or None.
    """
    if not _machines(transaction):
        _note_unasked(transaction)
        return None
    try:
        digest = tree.digest_of(tree.fingerprint(transaction.session.prefix))
        _required(transaction, _question(transaction, "look", digest=digest, checks=tuple(checks)))
    except EnvmedicError as error:
        return error
    except OSError as error:
        return ChecksFailed("The other machines could not be asked", cause=str(error), hint="Mend that, then try again")
    return None


def kept_for_others(transaction: OpenTransaction) -> str | None:
    """Why kept trees must not be removed now: programs of other machines use them, or may; None where they may go."""
    using = [item for item in transaction.record.witnesses if item.processes]
    if using:
        names = ", ".join(item.machine for item in using)
        return f"Kept trees of before stay: programs on {names} use the environment. `envmedic prune` removes them"
    if not transaction.record.witnesses and any(item.witnesses for item in live_records(transaction.session.prefix)):
        return (
            "Kept trees of before stay: other machines share this environment, and were not asked. `envmedic prune` "
            "removes them, after `envmedic fleet witness --users` on each"
        )
    return None


def tell_unasked(transaction: OpenTransaction) -> None:
    """Warn that an undo or redo on a shared environment asks no other machine."""
    others = ", ".join(item.machine for item in transaction.record.witnesses)
    if others:
        told = f"Other machines share this environment, and are not asked: `envmedic fleet witness --users` on {others}"
        transaction.session.notice("others-not-asked", told)


def _machines(transaction: OpenTransaction) -> tuple[str, ...]:
    options = transaction.session.options
    return tuple(dict.fromkeys((*options.witnesses, *options.machines)))


def _digest(transaction: OpenTransaction) -> str:
    return tree.digest_of(tree.fingerprint(transaction.directory.tree))


def _question(
    transaction: OpenTransaction,
    kind: Literal["use", "proof", "look"],
    *,
    digest: str = "",
    checks: tuple[Check, ...] = (),
    before: tuple[Outcome, ...] = (),
) -> WitnessQuestion:
    last = questions.asked(transaction.directory)
    options = transaction.session.options
    return WitnessQuestion(
        transaction=transaction.directory.transaction,
        number=last.number + 1 if last is not None else 1,
        kind=kind,
        machines=_machines(transaction),
        witnesses=options.witnesses,
        limit_s=options.witness_limit_s,
        digest=digest,
        checks=checks,
        before=before,
    )


def _required(transaction: OpenTransaction, question: WitnessQuestion) -> Mapping[str, WitnessAnswer]:
    """Ask, wait for the answers, and note them. Raises the error that is in the way, with a line for each machine."""
    with transaction.session.stage("witness"):
        found = _answers(transaction, question)
    _note(transaction, question, found)
    transaction.session.point(f"answered-{question.kind}")
    error = _objection(transaction, question, found)
    if error is not None:
        raise error
    return found


def _answers(transaction: OpenTransaction, question: WitnessQuestion) -> Mapping[str, WitnessAnswer]:
    session = transaction.session
    questions.ask(transaction.directory, question)
    session.point(f"asked-{question.kind}")
    deadline = time.monotonic() + question.limit_s
    found: dict[str, WitnessAnswer] = {}
    told = -1
    while True:
        missing = [name for name in question.machines if name not in found]
        found |= questions.answers(transaction.directory, question, missing)
        if len(found) != told:
            told = len(found)
            session.progress("witness", "machines", told, len(question.machines))
        if told == len(question.machines) or time.monotonic() > deadline:
            return found
        session.interruption.poll()
        time.sleep(_POLL_S)


def _objection(
    transaction: OpenTransaction, question: WitnessQuestion, found: Mapping[str, WitnessAnswer]
) -> EnvmedicError | None:
    """The error for what is in the way: what failed first, then programs, then silence."""
    options, prefix = transaction.session.options, transaction.session.prefix
    failed = [f"{name}: {why}" for name in found for why in _against(found[name], question, no_gpu=options.no_gpu)]
    silent = [name for name in question.machines if name not in found]
    nothing = [f"{name}: no answer within {question.limit_s:.0f} s" for name in silent]
    if failed:
        where = "at its place" if question.kind == "look" else "in its copy"
        return ChecksFailed(
            f"The repaired environment fails {where} on other machines",
            cause=failed[0],
            hint="See on those machines what each check said: `envmedic fleet witness` prints it",
            details=(*failed, *nothing),
        )
    used = [f"{name}: {process}" for name in found for process in found[name].processes]
    if used and question.kind != "look" and "in-use" not in options.allow:
        error = EnvironmentBusy(
            f"{prefix} is in use on {len({name for name in found if found[name].processes})} other machines",
            cause="What runs from it there would mix old modules in memory with new ones on disk",
            hint="End what runs, or use --allow in-use and restart it afterwards",
            details=(*used, *nothing),
        )
        error.allow = "in-use"
        return error
    if not silent:
        return None
    return ChecksFailed(
        f"{len(silent)} of {len(question.machines)} other machines did not answer",
        cause=nothing[0],
        hint=f"Start `envmedic fleet witness -p {prefix}` there first, where {prefix.parent} is the same directory",
        details=tuple(nothing),
    )


def _against(given: WitnessAnswer, question: WitnessQuestion, *, no_gpu: bool) -> Iterator[str]:
    """What an answer has against the repair."""
    if not given.passed:
        yield from given.why or ("it did not say why",)
    elif given.machine in question.witnesses and question.kind == "proof":
        if given.digest != question.digest:
            yield "it has proved another tree"
        if given.gpu == "not verified" and not no_gpu:
            yield "its GPUs were left out (--no-gpu)"


def _note(transaction: OpenTransaction, question: WitnessQuestion, found: Mapping[str, WitnessAnswer]) -> None:
    """Keep in the record what is known of each machine."""
    known = {item.machine: item for item in transaction.record.witnesses}
    for name in question.machines:
        item, given = known.get(name) or Witness(machine=name), found.get(name)
        if given is not None:
            item = msgspec.structs.replace(item, gpus=given.gpus, processes=given.processes)
            if question.kind == "proof" and name in question.witnesses:
                item = msgspec.structs.replace(item, proved=given.passed, gpu=given.gpu)
            if question.kind == "look":
                item = msgspec.structs.replace(item, looked=given.passed)
        known[name] = item
    transaction.note(witnesses=tuple(known.values()))


def _note_unasked(transaction: OpenTransaction) -> None:
    """Note that a repair which others have proved is put in place, after it was killed or undone, by this one alone."""
    told = "The other machines were not asked whether they see it in its place, and whether it works there"
    notes = transaction.record.notes
    if transaction.record.witnesses and told not in notes:
        transaction.note(notes=(*notes, told))


def _note_gpus(transaction: OpenTransaction, found: Sequence[WitnessAnswer]) -> None:
    """Let proofs on the GPUs of witnesses count where the repair itself runs on a machine without."""
    if transaction.record.gpu == "not verified" and found and all(item.gpu == "verified" for item in found):
        names = ", ".join(f"{item.machine} ({', '.join(item.gpus)})" for item in found)
        transaction.note(gpu="verified", gpu_reason=f"on {names}")
