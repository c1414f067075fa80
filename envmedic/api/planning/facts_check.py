"""The check ``facts``: what the facts of an environment, or of a clone of it, say of known faults."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from time import monotonic

from envmedic.api.context.observation import observe_clone
from envmedic.api.context.settings import Settings
from envmedic.api.playbooks import load_playbooks
from envmedic.diagnosis.vocabulary import derive
from envmedic.model.checks import Check, Confirmation, Outcome, Phase, Status
from envmedic.model.facts import Facts, Host
from envmedic.model.findings import of_host
from envmedic.model.playbook import AdviseStep, FactValue, LoadedPlaybook, Playbook
from envmedic.model.ports import Runner
from envmedic.playbook.schema.conditions import Evaluation, confirms

_STATUS: Mapping[bool | None, Status] = {True: "fail", False: "pass", None: "skip"}


class FactsProof:
    """Judges ``facts`` for one environment. What is confirmed before the steps is remembered until after them."""

    def __init__(self, settings: Settings, prefix: Path, host: Callable[[], Host]) -> None:
        self._settings = settings
        self._prefix = prefix
        self._host = host
        self._refuted: frozenset[str] | None = None
        """Playbooks whose faults the facts refuted before the steps; None where nothing ran before them."""

    def of_one_run(self) -> _Run:
        """The judge for one run of checks, in which the environment does not change and is observed once."""
        return _Run(self)

    @cached_property
    def known(self) -> tuple[LoadedPlaybook, ...]:
        """Playbooks that repair what facts confirm; what only the host's owner can mend counts for nothing here."""
        return tuple(item for item in load_playbooks(self._settings) if _repairs(item.playbook))

    def derived(self, runner: Runner) -> dict[str, FactValue]:
        """The flat facts of the environment in which `runner` runs its commands."""
        environment = observe_clone(self._settings, runner.tree, self._prefix)
        return derive(Facts(host=self._host(), environment=environment))

    def remember(self, refuted: frozenset[str]) -> None:
        """Keep what was refuted before the first step; a later round does not change it."""
        self._refuted = refuted if self._refuted is None else self._refuted

    def blames(self, playbook: str) -> bool:
        """Whether a confirmed fault counts: all do where nothing is known of before, else those refuted then."""
        return self._refuted is None or playbook in self._refuted


class _Run:
    """Judges ``facts`` during one run of checks."""

    def __init__(self, proof: FactsProof) -> None:
        self._proof = proof
        self._derived: dict[str, FactValue] | None = None

    def __call__(self, check: Check, runner: Runner, phase: Phase) -> tuple[Outcome, ...]:
        """One outcome: of the fault that the check names, or of all known ones together."""
        started = monotonic()
        if self._derived is None:
            self._derived = self._proof.derived(runner)
        if check.confirmation is not None:
            return (_of_one(check, check.confirmation, self._derived, started),)
        return (self._of_all(check, phase, started),)

    def _of_all(self, check: Check, phase: Phase, started: float) -> Outcome:
        found = {item.playbook.id: confirms(asked, self._derived or {}) for item, asked in self._asked()}
        confirmed = {name: _told(value) for name, value in found.items() if value.truth is True}
        if phase == "before":
            self._proof.remember(frozenset(name for name, value in found.items() if value.truth is False))
            confirmed = {}
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


def _of_one(check: Check, asked: Confirmation, derived: Mapping[str, FactValue], started: float) -> Outcome:
    found = confirms(asked, derived)
    unknown = f"the facts cannot tell: {_told(found)}"
    return Outcome(
        check=f"facts {asked.playbook}",
        status=_STATUS[found.truth],
        role=check.role,
        reason=_told(found) if found.truth else unknown if found.truth is None else "",
        detail="\n".join(leaf.text for leaf in found.leaves),
        seconds=monotonic() - started,
    )


def _told(found: Evaluation) -> str:
    return "; ".join(dict.fromkeys(leaf.text for leaf in found.leaves))


def _repairs(playbook: Playbook) -> bool:
    """Whether the playbook mends an environment by what its facts say."""
    acts = any(not isinstance(step, AdviseStep) for step in playbook.steps)
    return (
        playbook.when is not None
        and playbook.fault is not None
        and acts
        and not of_host(playbook.fault, playbook.fix_kind)
    )
