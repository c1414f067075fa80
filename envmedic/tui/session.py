"""State of the terminal UI as plain values. Screens show it, effects update it; nothing here has effects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec.structs import replace

from envmedic.api.context.settings import RepairRequest, Settings
from envmedic.errors import EnvmedicError, InputError, NothingToRepair

if TYPE_CHECKING:
    from envmedic.model.answers.environments import FoundEnvironment
    from envmedic.model.facts import Environment, Facts, Host
    from envmedic.model.findings import Diagnosis, Finding
    from envmedic.model.plan import Plan
    from envmedic.model.ports import ApplyOptions
    from envmedic.render.progress.repair_state import Repair

Phase = Literal["waiting", "reading", "read", "failed", "left"]
"""``left``: it is not read, since envmedic itself runs from it."""


class Known(msgspec.Struct, frozen=True):
    """An environment in the list, and how far its observation is."""

    found: FoundEnvironment
    phase: Phase = "waiting"
    diagnosis: Diagnosis | None = None
    """Diagnosis from facts alone."""
    error: EnvmedicError | None = None
    """Why it could not be read."""

    @property
    def prefix(self) -> str:
        """The prefix, which identifies it."""
        return self.found.prefix

    @property
    def facts(self) -> Facts | None:
        """Facts of host and environment, None before they are read."""
        return self.diagnosis.facts if self.diagnosis is not None else None

    @property
    def environment(self) -> Environment | None:
        """Its own facts, once they are read."""
        return self.facts.environment if self.facts is not None else None


SourceKind = Literal["paste", "log", "command"]


class TextSource(msgspec.Struct, frozen=True):
    """An error text: pasted, in a file, or printed by a command."""

    kind: SourceKind
    name: str
    """The file, or the command line."""
    argv: tuple[str, ...] = ()
    """Words of the command that printed the text."""
    kept: bool = False
    """Whether its failure is kept, so that the command can decide on a repair."""
    lines: int = 0
    alone: Diagnosis | None = None
    """Diagnosis from the text alone."""
    joined: Diagnosis | None = None
    """Diagnosis from the text and the facts of `prefix`."""
    prefix: str = ""
    """The environment that `joined` is about."""

    def diagnosis(self, prefix: str) -> Diagnosis | None:
        """The best there is for the environment at `prefix`."""
        return self.joined if self.joined is not None and self.prefix == prefix else self.alone


class AppState(msgspec.Struct, frozen=True):
    """The whole state of the App. Every transition returns a new value."""

    settings: Settings
    options: ApplyOptions
    last: str = ""
    """Prefix that was worked on in the last run, empty without one."""
    searching: bool = True
    """Whether the search for environments is still running."""
    environments: tuple[Known, ...] = ()
    chosen: str = ""
    """Prefix of the chosen environment, empty without one."""
    host: Host | None = None
    host_error: EnvmedicError | None = None
    source: TextSource | None = None
    """The given text, None without one."""
    plan: Plan | None = None
    plan_of: tuple[str, RepairRequest] | None = None
    """Prefix and wish that `plan` is for, or will be."""
    repair: Repair | None = None
    """The repair that runs, or the last one that did."""
    asks: bool = True
    """Whether a repair asks again before the exchange."""

    @property
    def current(self) -> Known | None:
        """The chosen environment."""
        return self.known(self.chosen)

    def known(self, prefix: str) -> Known | None:
        """The environment of that prefix in the list."""
        return next((item for item in self.environments if item.prefix == prefix), None)

    @property
    def diagnosis(self) -> Diagnosis | None:
        """The diagnosis shown: from the given text if there is one, else from the facts of the chosen environment."""
        if self.source is not None:
            return self.source.diagnosis(self.chosen)
        return self.current.diagnosis if self.current is not None else None

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Findings of the diagnosis, best first."""
        return self.diagnosis.findings if self.diagnosis is not None else ()

    def with_environments(self, found: tuple[Known, ...]) -> AppState:
        """The state with these environments, the active one first. Earlier observations are kept."""
        kept = {item.prefix: item for item in self.environments}
        again = {item.prefix for item in found}
        # what was named by hand is found by no search, and stays
        named = [item for item in self.environments if item.found.found_by == "its path" and item.prefix not in again]
        ordered = sorted((*found, *named), key=lambda item: not item.found.active)
        merged = tuple(_merged(item, kept.get(item.prefix)) for item in ordered)
        # An active environment comes first; envmedic's own cannot be repaired.
        usable = [item for item in merged if item.phase != "left"]
        active = next((item.prefix for item in usable if item.found.active), "")
        left = self.last if any(item.prefix == self.last for item in usable) else ""
        # else the likeliest to be repaired
        likely = sorted(usable, key=lambda item: item.found.torch is None)
        chosen = self.chosen or active or left or next((item.prefix for item in likely), "")
        return replace(self, environments=merged, chosen=chosen, searching=False)

    def with_state(
        self,
        prefix: str,
        phase: Phase,
        *,
        diagnosis: Diagnosis | None = None,
        error: EnvmedicError | None = None,
    ) -> AppState:
        """The state with a new phase of an environment; its last diagnosis stays until there is a new one."""
        changed = tuple(
            replace(item, phase=phase, diagnosis=diagnosis or item.diagnosis, error=error)
            if item.prefix == prefix
            else item
            for item in self.environments
        )
        # Each observation includes the host: the newest one counts.
        host = self.host
        if diagnosis is not None and diagnosis.facts is not None:
            host = diagnosis.facts.host
        return replace(self, environments=changed, host=host)

    def adding(self, found: Known) -> AppState:
        """The state with one more environment, which the user named."""
        if self.known(found.prefix) is not None:
            return self
        return replace(self, environments=(*self.environments, found))

    def choosing(self, prefix: str) -> AppState:
        """The state with another chosen environment; the text stays."""
        return replace(self, chosen=prefix, plan=None, plan_of=None)

    def with_source(self, source: TextSource | None) -> AppState:
        """The state with this text, or with none."""
        return replace(self, source=source, plan=None, plan_of=None)

    def told_with_facts(self, of: TextSource, prefix: str, diagnosis: Diagnosis) -> AppState:
        """The state with the diagnosis of text and facts together, unless another text was given since."""
        if self.source is None or not _same(self.source, of):
            return self
        return replace(self, source=replace(self.source, joined=diagnosis, prefix=prefix))

    def wish(self, finding: Finding | None) -> RepairRequest:
        """The request for a repair of `finding`: the text and, where the finding is not the best one, its playbook."""
        source = self.source
        best = self.findings[0] if self.findings else None
        # The best finding needs no --playbook: the command line finds it from the text.
        playbook = finding.playbook if finding is not None and finding != best else None
        if source is None:
            return RepairRequest(playbook=playbook or (finding.playbook if finding is not None else None))
        if source.kept:
            return RepairRequest(playbook=playbook, last=True)
        if source.kind == "command":
            return RepairRequest(playbook=playbook, command=source.argv)
        return RepairRequest(playbook=playbook, log=source.name)


def _merged(found: Known, before: Known | None) -> Known:
    if before is None:
        return found
    return replace(before, found=found.found)


def _same(now: TextSource, then: TextSource) -> bool:
    # diagnoses differ while they arrive, so they do not identify a text
    return (now.kind, now.name, now.lines) == (then.kind, then.name, then.lines)


def no_plan(finding: Finding, session: AppState) -> EnvmedicError | None:
    """The reason why no plan can be made for `finding`, None if it can."""
    if finding.playbook is None:
        return NothingToRepair("No playbook repairs this", hint="The page on the fault says what helps")
    if not session.chosen:
        return not_chosen()
    return None


def not_chosen() -> InputError:
    """The error for actions that need a chosen environment."""
    return InputError("No environment is chosen", hint="Choose one on the first screen, or name one with e")
