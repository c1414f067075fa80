"""Use case ``diagnose``: findings from error texts and facts.

The readers of environments and of texts are imported late: most diagnoses need only one of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from envmedic.api.context.settings import Settings
from envmedic.api.obstacles import in_diagnosis
from envmedic.api.outlook import with_outlook
from envmedic.api.playbooks import load_playbooks
from envmedic.diagnosis import findings
from envmedic.model.events import Notice
from envmedic.model.facts import Facts
from envmedic.model.findings import Diagnosis
from envmedic.model.playbook import NO_TEXT, LoadedPlaybook, ReadText
from envmedic.playbook.matching.log_stream import LogStream, read_lines


def diagnose(settings: Settings, prefix: Path | None, logs: Sequence[str]) -> tuple[Diagnosis, ...]:
    """Return one diagnosis for each log, or one from facts alone; without `prefix`, texts alone count."""
    facts: Facts | None = None
    if prefix is not None:
        from envmedic.api.context.observation import observe

        facts = observe(settings, prefix, meanwhile=_load_judges)
    if facts is not None and facts.environment is not None and not facts.environment.site_packages:
        text = f"{facts.environment.prefix} has no site-packages: whatever was installed in it is gone"
        settings.stream.emit(Notice(code="no-site-packages", message=text, level="warning"))
    playbooks = load_playbooks(settings)
    sources: Sequence[str | None] = logs or [None]
    return tuple(diagnose_text(settings, playbooks, facts, log, prefix) for log in sources)


def _load_judges() -> None:
    """Load the modules and tables that judge facts: 50 ms, while other processes still read the environment."""
    from envmedic.compat import tables
    from envmedic.diagnosis import vocabulary  # noqa: F401  # it is loaded for `findings`, which asks for it late

    tables.torch_tables()


def diagnose_text(
    settings: Settings,
    playbooks: tuple[LoadedPlaybook, ...],
    facts: Facts | None,
    log: str | None,
    prefix: Path | None,
) -> Diagnosis:
    """Return the diagnosis of one log (None: facts alone)."""
    if log is None:
        return with_outlook(conclude(playbooks, facts, NO_TEXT, prefix, log), playbooks)
    text = read_lines(log)
    found = diagnose_output(settings, playbooks, facts, text, prefix=prefix, name=log)
    _tell_what_is_no_text(settings, text)
    return found if text.size or found.findings else msgspec.structs.replace(found, reason="the text is empty")


def _tell_what_is_no_text(settings: Settings, text: LogStream) -> None:
    """Warn about an empty or binary log, whose diagnosis rests on facts alone."""
    # after the search: size and kind are known only once the stream was read
    name = "standard input" if text.source == "-" else text.source
    if not text.size:
        wrong = f"The text of {name} is empty"
    elif text.binary:
        wrong = f"{name} is a binary file, where the text of an error was expected"
    else:
        return
    settings.stream.emit(Notice(code="no-text", message=wrong, level="warning"))


def diagnose_output(
    settings: Settings,
    playbooks: tuple[LoadedPlaybook, ...],
    facts: Facts | None,
    text: Iterable[bytes],
    *,
    prefix: Path | None,
    name: str,
    here: bool = False,
) -> Diagnosis:
    """Return the diagnosis of `text`, named `name`; if it reports a crash, search for the crashing imports.

    `here` says that the text was written on the host of `facts`.
    """
    read = read_output(text, playbooks)
    matches = read.matches
    if facts is not None:
        from envmedic.api.planning.crashes import with_crash
        from envmedic.api.planning.library_contents import with_contents
        from envmedic.api.planning.statements import with_statements

        facts = with_statements(playbooks, facts, matches)
        # hashes first: a search for crashing imports takes minutes, and finds the library with wrong bytes guilty at best
        hashed = with_contents(settings, playbooks, facts, read)
        torn = hashed is not facts and damaged(hashed)
        facts = hashed if torn else with_crash(settings, playbooks, hashed, matches)
    found = conclude(playbooks, facts, read, prefix, name, here=here)
    if found.undecided:
        from envmedic.diagnosis import resemblance

        found = resemblance.second_opinion(found, read, resemblance.load_table())
    return with_outlook(found, playbooks)


def damaged(facts: Facts) -> bool:
    """Whether a library of the environment is cut off or holds something else than recorded."""
    return facts.environment is not None and any(item.cut_off for item in facts.environment.files or ())


def read_output(lines: Iterable[bytes], playbooks: Sequence[LoadedPlaybook]) -> ReadText:
    """Return what the signatures of `playbooks` find in the lines of an output, and its failures."""
    from envmedic.playbook.matching.match import read_text

    return read_text(lines, playbooks)


def diagnose_lines(
    playbooks: tuple[LoadedPlaybook, ...], facts: Facts, lines: Iterable[bytes], prefix: Path
) -> Diagnosis:
    """Return the diagnosis of what checks have printed on this host."""
    return conclude(playbooks, facts, read_output(lines, playbooks), prefix, "checks", here=True)


def conclude(
    playbooks: tuple[LoadedPlaybook, ...],
    facts: Facts | None,
    text: ReadText,
    prefix: Path | None,
    log: str | None,
    *,
    here: bool = False,
) -> Diagnosis:
    """Combine what a text says and facts into a diagnosis; `here` is that of `findings.diagnose`."""
    place = None if prefix is None else str(prefix)
    found = findings.diagnose(text, facts, playbooks, prefix=place, log=log, here=here)
    return in_diagnosis(msgspec.structs.replace(found, differs=_differs(facts)))


def _differs(facts: Facts | None) -> tuple[str, ...]:
    """Where the project of the environment disagrees with it; most environments have none."""
    if facts is None or facts.environment is None or facts.environment.project is None:
        return ()
    from envmedic.planner import markers
    from envmedic.planner.project_sync import disagreements

    return disagreements(facts.environment, markers(facts.environment, facts.host))
