"""The check ``facts``: whether facts of an environment, or of its clone, confirm known faults."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from sys import maxsize
from time import monotonic

from envmedic.analysis.text_statements import with_text
from envmedic.api.context.observation import observe_clone
from envmedic.api.context.settings import Settings
from envmedic.api.planning.statements import in_clone
from envmedic.api.playbooks import load_playbooks
from envmedic.diagnosis.vocabulary import derive
from envmedic.forked import Fork, begun
from envmedic.model.checks import Check, Confirmation, Outcome, Phase, Status
from envmedic.model.facts import Facts, Host
from envmedic.model.findings import of_host
from envmedic.model.playbook import AdviseStep, FactValue, LoadedPlaybook, Playbook
from envmedic.model.ports import FactsJudge, Runner
from envmedic.model.vocabulary.names import fact_kind
from envmedic.playbook.schema.conditions import Evaluation, Truth, confirms, named

_CORES = 4
"""Cores that a machine has to have before the environment is observed beside other checks."""
_STATUS: Mapping[bool | None, Status] = {True: "fail", False: "pass", None: "skip"}


class FactsProof:
    """Runs the check ``facts`` for one environment, and compares the state after the steps with that before."""

    def __init__(self, settings: Settings, prefix: Path, host: Callable[[], Host]) -> None:
        self._settings = settings
        self._prefix = prefix
        self._host = host
        self._refuted: frozenset[str] | None = None
        """Playbooks that facts refuted before the steps; None if no check ran before them."""
        self._shown: dict[str, frozenset[str]] = {}
        """The names of the facts that last confirmed a fault, by the words of what was asked."""

    @contextmanager
    def of_one_run(self, runner: Runner, *, asked: bool) -> Iterator[FactsJudge]:
        """Yield the check for one run, during which the environment does not change and is observed once.

        Where it is `asked` and cores are free, it is observed beside what comes before it in the run.
        """
        with begun(lambda: self.observed(runner), cores=_CORES if asked else maxsize) as observing:
            yield _Run(self, observing)

    @cached_property
    def known(self) -> tuple[LoadedPlaybook, ...]:
        """Playbooks that repair an environment by its facts, without those about the host."""
        return tuple(item for item in load_playbooks(self._settings) if _repairs(item.playbook))

    def observed(self, runner: Runner) -> Facts:
        """Return the facts of the environment in which `runner` runs commands."""
        return Facts(host=self._host(), environment=observe_clone(self._settings, runner.tree, self._prefix))

    def remember(self, refuted: frozenset[str]) -> None:
        """Remember the playbooks refuted before the first step; a later round does not change them."""
        self._refuted = refuted if self._refuted is None else self._refuted

    def settled(self, asked: Confirmation, found: Evaluation) -> Truth:
        """Return whether facts confirm a fault now.

        What confirmed it before and does no more is gone; facts that were unknown all along tell nothing against that.
        """
        names = frozenset(leaf.name for leaf in found.leaves)
        if found.truth is True:
            self._shown[repr(asked)] = names
        shown = self._shown.get(repr(asked))
        return False if found.truth is None and shown is not None and shown.isdisjoint(names) else found.truth

    def blames(self, playbook: str) -> bool:
        """Whether a confirmed fault counts against the repair."""
        # only faults that the steps introduced: an older fault, or one that was unknown before, is no regression
        return self._refuted is None or playbook in self._refuted


class _Run:
    """The check ``facts`` during one run of checks."""

    def __init__(self, proof: FactsProof, observing: Fork[Facts]) -> None:
        self._proof = proof
        self._observing = observing
        self._facts: Facts | None = None

    def __call__(self, check: Check, runner: Runner, phase: Phase) -> tuple[Outcome, ...]:
        """Return one outcome: for the fault that the check names, or for all known faults together."""
        started = monotonic()
        # observed on first use: an observation is costly, and many runs have no such check
        if self._facts is None:
            self._facts = self._observing.value()
        if check.confirmation is not None:
            facts = in_clone(check.confirmation, self._facts, runner.tree)
            # a fault that facts alone have shown is gone by facts alone: there is no text whose groups could count
            silent = {name: None for name in named(check.confirmation.when) if fact_kind(name) is None}
            derived = silent | with_text(check.confirmation.groups, facts.statements, derive(facts))
            found = confirms(check.confirmation, derived)
            truth = self._proof.settled(check.confirmation, found)
            return (_of_one(check, check.confirmation, found, truth, started),)
        return (self._of_all(check, phase, derive(self._facts), started),)

    def _of_all(self, check: Check, phase: Phase, derived: Mapping[str, FactValue], started: float) -> Outcome:
        found = {item.playbook.id: confirms(asked, derived) for item, asked in self._asked()}
        confirmed = {name: _told(value) for name, value in found.items() if value.truth is True}
        if phase == "before":
            self._proof.remember(frozenset(name for name, value in found.items() if value.truth is False))
            confirmed = {}  # before the steps, the fault to repair is expected
        blamed = [f"{name}: {text}" for name, text in confirmed.items() if self._proof.blames(name)]
        reason = blamed[0] if len(blamed) == 1 else f"{len(blamed)} faults: {', '.join(sorted(confirmed))}"
        return Outcome(
            check="facts",
            status="fail" if blamed else "pass",
            role=check.role,
            reason=reason if blamed else "",
            detail="\n".join(blamed),
            seconds=monotonic() - started,
        )

    def _asked(self) -> list[tuple[LoadedPlaybook, Confirmation]]:
        pairs = ((item, Confirmation.of(item.playbook)) for item in self._proof.known)
        return [(item, asked) for item, asked in pairs if asked is not None]


def _of_one(check: Check, asked: Confirmation, found: Evaluation, truth: Truth, started: float) -> Outcome:
    unknown = f"the facts cannot tell: {_told(found)}"
    return Outcome(
        check=f"facts {asked.playbook}",
        status=_STATUS[truth],
        role=check.role,
        reason=_told(found) if truth else unknown if truth is None else "",
        detail="\n".join(leaf.text for leaf in found.leaves),
        seconds=monotonic() - started,
    )


def _told(found: Evaluation) -> str:
    return "; ".join(dict.fromkeys(leaf.text for leaf in found.leaves))


def _repairs(playbook: Playbook) -> bool:
    """Whether the playbook repairs an environment that facts can judge."""
    acts = any(not isinstance(step, AdviseStep) for step in playbook.steps)
    return (
        playbook.when is not None
        and playbook.fault is not None
        and acts
        and not of_host(playbook.fault, playbook.fix_kind)
    )
