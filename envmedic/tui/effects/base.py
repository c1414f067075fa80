"""Effects of the terminal UI: the only part of it that calls `api`.

An effect starts a job and writes its result into the session. All run through `Jobs`, so that none of them delays a
key, and no error is lost: each is in the session, or shown as a panel.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from msgspec.structs import replace

from envmedic import xdg
from envmedic.api.context.settings import NamedTarget
from envmedic.errors import EnvmedicError, InputError, Interrupted
from envmedic.model.events import Event, EventStream
from envmedic.playbook.matching.log_stream import read_lines
from envmedic.tui.command_lines import words
from envmedic.tui.effects.jobs import BackgroundJob, Jobs
from envmedic.tui.session import AppState, Known, Phase, TextSource

if TYPE_CHECKING:
    from envmedic.api.context.settings import RepairRequest, Settings
    from envmedic.api.repair import Prepared
    from envmedic.model.answers.environments import Environments, FoundEnvironment
    from envmedic.model.answers.explanation import Explanation
    from envmedic.model.facts import Facts
    from envmedic.model.findings import Diagnosis
    from envmedic.model.plan import Plan
    from envmedic.model.ports import ApplyOptions, Means

T = TypeVar("T")
LIMITS = {"probe": 2}
"""Environments that are read at once: more would only wait for the same disk."""
NEARBY = frozenset({"working directory", "project", "below the working directory", "UV_PROJECT_ENVIRONMENT"})
"""How environments are found that somebody else's checkout may have brought."""
"""Pasted texts whose files are kept."""


class Front(Protocol):
    """The App as effects need it."""

    jobs: Jobs

    @property
    def session(self) -> AppState:
        """What is known now."""

    def update(self, session: AppState) -> None:
        """Show what is known from now on."""

    def later(self, call: Callable[[], object]) -> None:
        """Do something on the App's thread; may be called from any."""

    def keep(self, *, environment: str) -> None:
        """Begin with this environment in the next run."""

    def show_error(self, error: EnvmedicError) -> None:
        """Show the panel of an error that belongs to nothing on the screen."""


class Effects:
    """The effects of one App."""

    def __init__(self, front: Front) -> None:
        self._front = front
        self._named_by_hand: set[str] = set()
        """Prefixes that the user chose or named: their own programs may run."""

    @property
    def _session(self) -> AppState:
        return self._front.session

    def job(
        self,
        kind: str,
        title: str,
        work: Callable[[Settings, BackgroundJob[T]], T],
        then: Callable[[T], None],
        failed: Callable[[EnvmedicError], None] | None = None,
        *,
        latest: str = "",
        must_end: bool = False,
        on_events: Callable[[list[Event]], None] | None = None,
    ) -> BackgroundJob[T]:
        """Start a job whose work gets settings with an event stream of its own, for the chosen environment.

        Without `failed`, an error is shown as a panel, and an interruption by the user is no error.
        """
        unnamed = self.merely_found(self._session.chosen)

        def run(job: BackgroundJob[T]) -> T:
            from envmedic.api.context.subprocess_probe import ChildProcess

            # Observation runs in a child: reading libraries holds the GIL, which would freeze the screen.
            stream = EventStream([job.sink])
            given = replace(self._session.settings, stream=stream, observer=ChildProcess(), unnamed=unnamed)
            return work(given, job)

        return self._front.jobs.start(
            BackgroundJob(kind, title, run, then, failed or self._show, on_events, must_end=must_end, latest=latest)
        )

    def _show(self, error: EnvmedicError) -> None:
        if not isinstance(error, Interrupted):
            self._front.show_error(error)

    # environments and host

    def look_around(self) -> None:
        """Find environments and the host, then read each environment in the background, the chosen one first."""
        self._front.update(replace(self._session, searching=True))
        self.job("find", "looking for environments", _environments, self._found, latest="find")
        self.job("host", "reading the host", _host, self._host_seen, self._host_failed, latest="host")

    def _found(self, found: Environments) -> None:
        self._front.update(self._session.with_environments(tuple(map(_known, found.environments))))
        waiting = [item for item in self._session.environments if item.phase == "waiting"]
        chosen = self._session.chosen
        # then environments with torch, the likeliest to be repaired
        for item in sorted(waiting, key=lambda item: (item.prefix != chosen, item.found.torch is None)):
            self.read(item.prefix)

    def _host_seen(self, facts: Facts) -> None:
        self._front.update(replace(self._session, host=facts.host, host_error=None))

    def _host_failed(self, error: EnvmedicError) -> None:
        self._front.update(replace(self._session, host_error=error))

    def read(self, prefix: str) -> None:
        """Read the environment at `prefix`, as soon as fewer than two others are read."""

        def work(settings: Settings, job: BackgroundJob[Diagnosis]) -> Diagnosis:
            self._front.later(lambda: self._front.update(self._session.with_state(prefix, "reading")))
            from envmedic.api.context import subprocess_probe
            from envmedic.api.recovery import tell_unsettled

            # A checkout may bring a prepared environment: of one that was merely found nearby, nothing runs.
            seen = replace(settings, unnamed=self.merely_found(prefix))
            diagnosis = subprocess_probe.diagnose(seen, Path(prefix), cancel=job.token)
            return replace(diagnosis, interrupted=tell_unsettled(settings, Path(prefix)))

        def failed(error: EnvmedicError) -> None:
            phase: Phase = "waiting" if isinstance(error, Interrupted) else "failed"
            self._front.update(self._session.with_state(prefix, phase, error=error if phase == "failed" else None))

        self.job("probe", f"reading {prefix}", work, partial(self._read, prefix), failed, latest=f"read {prefix}")

    def _read(self, prefix: str, diagnosis: Diagnosis) -> None:
        self._front.update(self._session.with_state(prefix, "read", diagnosis=diagnosis))
        if prefix == self._session.chosen:
            self._join()

    def merely_found(self, prefix: str) -> bool:
        """Whether envmedic found this environment near the working directory, and the user has not taken it yet."""
        known = self._session.known(prefix)
        if known is None or known.found.active or prefix in self._named_by_hand:
            return False
        return known.found.found_by in NEARBY

    def stop_reading(self) -> None:
        """Cancel background reads of all environments except the chosen one."""
        for job in self._front.jobs.running:
            if job.kind == "probe" and job.latest != f"read {self._session.chosen}":
                job.cancel()

    def choose(self, prefix: str) -> None:
        """Work on the environment at `prefix` from now on."""
        self._front.keep(environment=prefix)
        found_only = self.merely_found(prefix)
        self._named_by_hand.add(prefix)
        if prefix == self._session.chosen and not found_only:
            return
        if prefix != self._session.chosen:
            self._front.update(self._session.choosing(prefix))
        current = self._session.current
        if current is not None and (current.phase == "waiting" or (found_only and current.phase != "left")):
            self.read(prefix)
        self._join()

    def choose_by_path(self, path: str) -> None:
        """Work on the environment whose directory, or interpreter, is `path`."""
        self.job("find", f"looking at {path}", partial(_named, path), self._named, latest="named")

    def _named(self, found: FoundEnvironment) -> None:
        self._front.update(self._session.adding(_known(found)))
        self.choose(found.prefix)

    def report(self, prefix: str, folder: str, then: Callable[[tuple[tuple[str, ...], str]], None]) -> None:
        """Write a report of the last repair of `prefix` into `folder`; gives the paths, and the Markdown."""

        def work(_settings: Settings, _job: BackgroundJob[tuple[tuple[str, ...], str]]) -> tuple[tuple[str, ...], str]:
            from envmedic.api import reporting
            from envmedic.render.reports.forms import TEXTS

            found, place = reporting.report(Path(prefix)), xdg.expanded(folder).absolute()
            texts = {place / reporting.FILES[form]: text(found) for form, text in TEXTS.items()}
            return tuple(map(str, reporting.write(texts))), TEXTS["markdown"](found)

        self.job("report", f"writing a report into {folder}", work, then, latest="report")

    # texts

    def give_text(self, text: str) -> None:
        """Match an error text: alone at once, then with the facts of the chosen environment. Empty takes it back."""
        if not text.strip():
            self._front.jobs.cancel("text")
            self._front.update(self._session.with_source(None))
            return

        def work(settings: Settings, _job: BackgroundJob[tuple[TextSource, Diagnosis]]) -> tuple[TextSource, Diagnosis]:
            from envmedic.api.context.texts import keep_text

            # kept as a file, so that the command line that is shown can name it
            source = TextSource("paste", str(keep_text(text)), lines=text.count("\n") + (not text.endswith("\n")))
            return source, _of_text(settings, source.name)

        self.job("text", "matching the text", work, self._matched, latest="text")

    def open_log(self, path: str) -> None:
        """Match the text in a file."""
        full = os.path.abspath(os.path.expanduser(path))  # noqa: PTH100, PTH111  # keeps links

        def work(settings: Settings, _job: BackgroundJob[tuple[TextSource, Diagnosis]]) -> tuple[TextSource, Diagnosis]:
            return TextSource("log", full), _of_text(settings, full)

        self.job("text", f"matching {full}", work, self._matched, latest="text")

    def _matched(self, found: tuple[TextSource, Diagnosis]) -> None:
        source, diagnosis = found
        self._front.update(self._session.with_source(replace(source, alone=diagnosis)))
        self._join()

    def _join(self) -> None:
        """Match the current text again with the facts of the chosen environment, once both are known."""
        source, current = self._session.source, self._session.current
        if source is None or source.kind == "command" or current is None or current.facts is None:
            return
        facts, prefix = current.facts, current.prefix

        def work(settings: Settings, _job: BackgroundJob[Diagnosis]) -> Diagnosis:
            return _of_text(settings, source.name, facts, Path(prefix))

        def then(diagnosis: Diagnosis) -> None:
            self._front.update(self._session.told_with_facts(source, prefix, diagnosis))

        self.job("join", "judging the text by the facts", work, then, latest="join")

    def watch(
        self,
        line: str,
        on_events: Callable[[list[Event]], None],
        ended: Callable[[Diagnosis], None],
        failed: Callable[[EnvmedicError], None],
    ) -> BackgroundJob[tuple[Diagnosis, bool]]:
        """Run a command line in the chosen environment, as it is, diagnose how it ends, and keep its failure.

        Raises InputError where it is no command line, or no environment is chosen.
        """
        argv, prefix = tuple(words(line)), self._session.chosen
        if not prefix:
            raise InputError("No environment is chosen", hint="Choose one, then run the command in it")

        def work(settings: Settings, job: BackgroundJob[tuple[Diagnosis, bool]]) -> tuple[Diagnosis, bool]:
            from envmedic.api.planning import cases

            return cases.run_and_keep(settings, Path(prefix), argv, cancel=job.token)

        def then(ended_with: tuple[Diagnosis, bool]) -> None:
            diagnosis, kept = ended_with
            source = TextSource("command", line, argv, kept=kept, alone=diagnosis, joined=diagnosis, prefix=prefix)
            self._front.update(self._session.with_source(source))
            ended(diagnosis)

        return self.job("command", f"running {line}", work, then, failed, latest="command", on_events=on_events)

    # pages and plans

    def explain(self, topic: str, then: Callable[[Explanation], None]) -> None:
        """The page on a fault or a playbook."""

        def work(settings: Settings, _job: BackgroundJob[Explanation]) -> Explanation:
            from envmedic.api.knowledge import explanation

            return explanation.explain(settings, topic)

        self.job("explain", f"explaining {topic}", work, then, latest=f"explain {topic}")

    def excerpt(self, numbers: Iterable[int], then: Callable[[dict[int, str]], None]) -> None:
        """Lines of the current text by number, from 1; none of a command's output, which is not kept."""
        source, wanted = self._session.source, frozenset(numbers)
        if source is None or source.kind == "command" or not wanted:
            return

        def work(_settings: Settings, _job: BackgroundJob[dict[int, str]]) -> dict[int, str]:
            return lines_of(Path(source.name), wanted)

        self.job("excerpt", f"reading {source.name}", work, then, latest="excerpt")

    def plan(
        self, wish: RepairRequest, then: Callable[[Prepared | Diagnosis], None], failed: Callable[[EnvmedicError], None]
    ) -> BackgroundJob[Prepared | Diagnosis]:
        """The plan for `wish` on the chosen environment, ready to be carried out; changes nothing."""
        prefix = Path(self._session.chosen)

        def work(settings: Settings, _job: BackgroundJob[Prepared | Diagnosis]) -> Prepared | Diagnosis:
            from envmedic.api import repair

            return repair.prepare(settings, prefix, wish)

        return self.job("plan", "making the plan", work, then, failed, latest="plan")

    def means(
        self,
        plan: Plan,
        options: ApplyOptions,
        then: Callable[[Means], None],
        failed: Callable[[EnvmedicError], None],
    ) -> None:
        """Find out how the plan would be carried out here, or why it cannot be."""

        def work(_settings: Settings, _job: BackgroundJob[Means]) -> Means:
            from envmedic.api import repair

            return repair.means(plan, options)

        self.job("means", "trying how it would be carried out", work, then, failed, latest="means")


def lines_of(path: Path, wanted: frozenset[int]) -> dict[int, str]:
    """Lines of a text by number, from 1, as the diagnosis counts them. Raises InputError where it cannot be read."""
    numbered = enumerate(read_lines(path), start=1)
    last = max(wanted)
    return {
        number: text.decode("utf-8", "replace").rstrip("\r")
        for number, text in takewhile(lambda item: item[0] <= last, numbered)
        if number in wanted
    }


def _known(found: FoundEnvironment) -> Known:
    # a repair of envmedic's own environment would replace the running program
    own = os.path.realpath(found.prefix) == os.path.realpath(sys.prefix)
    return Known(found, "left" if own else "waiting")


def _environments(_settings: Settings, _job: BackgroundJob[Environments]) -> Environments:
    from envmedic.api import environments

    return environments.list_environments()


def _host(settings: Settings, _job: BackgroundJob[Facts]) -> Facts:
    from envmedic.api.context import observation

    return observation.observe(settings, None)


def _named(path: str, _settings: Settings, _job: BackgroundJob[FoundEnvironment]) -> FoundEnvironment:
    from envmedic.api.context.target import find_prefix
    from envmedic.api.environments import describe_environment

    given = os.path.expanduser(path)  # noqa: PTH111  # keeps links
    target = NamedTarget(prefix=given) if os.path.isdir(given) else NamedTarget(python=given)  # noqa: PTH112
    return describe_environment(find_prefix(target))


def _of_text(settings: Settings, log: str, facts: Facts | None = None, prefix: Path | None = None) -> Diagnosis:
    from envmedic.api.diagnosis import diagnose_text
    from envmedic.api.playbooks import load_playbooks

    return diagnose_text(settings, load_playbooks(settings), facts, log, prefix)
