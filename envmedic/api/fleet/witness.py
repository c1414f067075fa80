"""Use case ``fleet witness``: another machine that shares an environment answers what a repair of it asks.

It writes nothing but its answers, beside the journal of the repair: the repaired copy is shown at the path of the
environment in a mount namespace of this process alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import msgspec

from envmedic.api.context.observation import host_of
from envmedic.api.context.settings import Settings
from envmedic.api.context.target import EnvironmentTarget
from envmedic.api.context.wiring import check_runner, require_repair_packages
from envmedic.api.fleet.folder import require_names
from envmedic.engine.stage.activated_runner import ActivatedRunner
from envmedic.engine.stage.runners import DirectRunner, NamespaceRunner, probe_namespace
from envmedic.engine.store import marker
from envmedic.engine.store.context import environment_after
from envmedic.engine.store.interruption import Interruption
from envmedic.engine.store.layout import Store, TransactionDirectory
from envmedic.engine.transaction.repair_stages import reasons
from envmedic.engine.verify.verdict import FAILURES, judge_elsewhere, told, unasked
from envmedic.engine.witness import questions
from envmedic.errors import EnvmedicError
from envmedic.model.answers.witness import WitnessAnswer, WitnessQuestion, WitnessReport
from envmedic.model.checks import Check, Outcome
from envmedic.model.events import Notice
from envmedic.model.ports import CheckRunner
from envmedic.probe.prefix import processes
from envmedic.tree import fingerprint as tree

_POLL_S = 0.5
_TREE_S = 1.0
"""How long to wait before the files of a tree are looked at again."""


def users(prefix: Path) -> tuple[str, ...]:
    """Return the programs on this machine that run from the environment or from a kept tree of it, a line for each."""
    store = Store.of(prefix)
    trees = (item.tree for item in store.transactions() if item.tree.is_dir())
    found = {item.pid: item for place in (store.prefix, *trees) for item in processes.users(place)}
    return tuple(f"{item.pid} {item.command} ({item.why})" for item in found.values())


def witness(settings: Settings, prefix: Path, machine: str, *, limit_s: float, no_gpu: bool) -> WitnessReport:
    """Wait for a repair of the environment, and answer its questions until it has ended, or the limit is over."""
    require_repair_packages()
    require_names((machine,))
    this = _Machine(settings, EnvironmentTarget.of(prefix), machine, no_gpu)
    store = Store.of(prefix)
    followed: TransactionDirectory | None = None
    answers: list[WitnessAnswer] = []
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        found = _asking(store)
        if found is not None and followed is None:
            followed = found[0]
            this.tell(followed, found[1])
        if followed is not None:
            journal = questions.journal_of(followed)
            if journal is not None and journal.settled:
                return WitnessReport(
                    prefix=str(prefix),
                    machine=machine,
                    transaction=followed.transaction,
                    answers=tuple(answers),
                    environment=environment_after(journal.state, "repair"),
                )
        if found is not None and machine in found[1].machines and found[1].number not in {a.number for a in answers}:
            answers.append(this.answered(*found))
            questions.answer(found[0], answers[-1])
        else:
            time.sleep(_POLL_S)
    transaction = followed.transaction if followed is not None else None
    return WitnessReport(prefix=str(prefix), machine=machine, transaction=transaction, answers=tuple(answers))


def _asking(store: Store) -> tuple[TransactionDirectory, WitnessQuestion] | None:
    try:
        return questions.asking(store)
    except OSError:  # a network file system lists what has gone
        return None


@dataclass(frozen=True)
class _Machine:
    """This machine, for the repair that asks."""

    settings: Settings
    target: EnvironmentTarget
    name: str
    no_gpu: bool

    def tell(self, directory: TransactionDirectory, question: WitnessQuestion) -> None:
        """Tell that a repair asks, and warn where it does not ask this machine."""
        text = f"transaction {directory.transaction} asks {', '.join(question.machines)}"
        notice = Notice(code="witness", message=text, level="info")
        if self.name not in question.machines:
            hint = f"{text}, not {self.name}: give this machine its name with --machine"
            notice = Notice(code="witness", message=hint, level="warning")
        self.settings.stream.emit(notice)

    def answered(self, directory: TransactionDirectory, question: WitnessQuestion) -> WitnessAnswer:
        """Return the answer to a question. What keeps this machine from one is an answer, too."""
        started = time.monotonic()
        given = WitnessAnswer(
            transaction=question.transaction, number=question.number, kind=question.kind, machine=self.name, passed=True
        )
        try:
            if question.kind == "look":
                given = self._look(given, question)
            elif question.kind == "proof" and self.name in question.witnesses:
                given = self._proof(given, directory.tree, question)
        except (EnvmedicError, OSError) as error:
            cause = f": {error.cause}" if isinstance(error, EnvmedicError) and error.cause else ""
            given = msgspec.structs.replace(given, passed=False, why=(f"{error}{cause}",))
        return msgspec.structs.replace(
            given, processes=users(self.target.real), gpus=self._gpus, seconds=time.monotonic() - started
        )

    def _proof(self, given: WitnessAnswer, copy: Path, question: WitnessQuestion) -> WitnessAnswer:
        """Prove the copy as it is seen here, shown at the path of the environment."""
        prefix = self.target.real
        digest = _seen(lambda: _digest(copy), question.digest, question.limit_s / 2)
        given = msgspec.structs.replace(given, digest=digest or "")
        if digest != question.digest:
            return _failed(given, f"{copy} holds other files here than where the repair is carried out")
        probe = probe_namespace(prefix, copy)
        if not probe.ok:
            return _failed(given, f"the copy cannot be shown at {prefix} here: {probe.reason}")
        runner = self._activated(NamespaceRunner(prefix, copy, pid_namespace=probe.pid_namespace), copy)
        # the user's own command may take hours, or write its results a second time
        checks = tuple(check for check in question.checks if check.name != "command")
        before, after = self._outcomes(checks, runner)
        verdict = judge_elsewhere(before, question.before, after, no_gpu=self.no_gpu)
        return msgspec.structs.replace(
            given, passed=verdict.passed, why=reasons(verdict), gpu=verdict.gpu, outcomes=after
        )

    def _outcomes(
        self, checks: tuple[Check, ...], runner: ActivatedRunner
    ) -> tuple[tuple[Outcome, ...], tuple[Outcome, ...]]:
        """What checks say here of the environment as it is, as far as that counts, and of the copy."""
        run, emit = self._checks, self.settings.stream.emit
        live = self._activated(DirectRunner(self.target.real), self.target.real)
        # facts are judged against those before
        facts = tuple(check for check in checks if check.name == "facts")
        before = run(facts, live, "before", emit) if facts else ()
        after = run(checks, runner, "after", emit)
        asked = unasked(checks, before, after, no_gpu=self.no_gpu)
        return (*before, *(run(asked, live, "before", emit) if asked else ())), after

    def _look(self, given: WitnessAnswer, question: WitnessQuestion) -> WitnessAnswer:
        """See that the repaired tree is at the path of the environment here; as a witness, that it works there."""
        prefix, limit_s = self.target.real, question.limit_s / 2
        if _seen(lambda: marker.read(prefix), question.transaction, limit_s) != question.transaction:
            return _failed(given, f"{prefix} is still what it was before the repair here, after {limit_s:.0f} s")
        if self.name not in question.witnesses:
            return given
        digest = _seen(lambda: _digest(prefix), question.digest, limit_s)
        given = msgspec.structs.replace(given, digest=digest or "")
        if digest != question.digest:
            return _failed(given, f"{prefix} holds other files here than where the repair was carried out")
        runner = self._activated(DirectRunner(prefix), prefix)
        after = self._checks(question.checks, runner, "smoke", self.settings.stream.emit)
        broken = tuple(told(item) for item in after if item.status in FAILURES)
        return msgspec.structs.replace(given, passed=not broken, why=broken, outcomes=after)

    def _activated(self, runner: NamespaceRunner | DirectRunner, place: Path) -> ActivatedRunner:
        return ActivatedRunner(runner, place, Interruption())

    @cached_property
    def _checks(self) -> CheckRunner:
        return check_runner(self.settings, self.target, no_gpu=self.no_gpu)

    @cached_property
    def _gpus(self) -> tuple[str, ...]:
        return tuple(sorted({item.compute_capability or "unknown" for item in host_of(self.settings).gpus}))


def _failed(given: WitnessAnswer, why: str) -> WitnessAnswer:
    return msgspec.structs.replace(given, passed=False, why=(why,))


def _digest(place: Path) -> str:
    return tree.digest_of(tree.fingerprint(place))


def _seen(look: Callable[[], str | None], wanted: str, limit_s: float) -> str | None:
    """What is seen, once it is `wanted`, or when the limit is over: a network file system shows old attributes a while."""
    deadline = time.monotonic() + limit_s
    while True:
        try:
            found = look()
        except OSError:  # what it lists has gone
            found = None
        if found == wanted or time.monotonic() > deadline:
            return found
        time.sleep(_TREE_S)
