"""What the output of the user's program says: the reported error again, no fault of the environment, or another one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

from envmedic.api.context.settings import Settings
from envmedic.api.diagnosis import conclude, read_output
from envmedic.api.playbooks import load_playbooks
from envmedic.api.running import told_ending
from envmedic.model.checks import Check
from envmedic.model.findings import Diagnosis
from envmedic.model.playbook import LoadedPlaybook, ReadText
from envmedic.model.ports import ProgramOutput
from envmedic.model.program import ReportedError

_CHANGING = re.compile(r"0x[0-9a-fA-F]+|\d+")
"""Addresses, process IDs and times: they differ from run to run."""


def reported_error(
    lines: Iterable[bytes], playbooks: tuple[LoadedPlaybook, ...], diagnosis: Diagnosis
) -> ReportedError:
    """Return what tells the error of a text whose `diagnosis` this is."""
    found = next((item for item in diagnosis.every if item.signature is not None), None)
    message = read_output(lines, playbooks).failures.message
    return ReportedError(signature=found.signature if found is not None else None, message=message)


class OutputJudge:
    """Reads outputs of a program by the signatures of all playbooks."""

    def __init__(self, settings: Settings) -> None:
        self._playbooks = load_playbooks(settings)

    def __call__(self, check: Check, lines: Iterable[bytes], returncode: int | None, prefix: Path) -> ProgramOutput:
        """Say what `lines` tell of a program that ran in `prefix`; `returncode` is None while it is alive."""
        ending = None if returncode is None else told_ending(returncode)
        text = read_output(lines if ending is None else chain(lines, [f"{ending}\n".encode()]), self._playbooks)
        message = text.failures.message
        why = f"{ending}: {message}" if ending and message else message or ending or ""
        reported = check.program.reported if check.program is not None else ReportedError()
        if _is_again(reported, text):
            return ProgramOutput(kind="reported", why=f"the reported error again: {why}")
        found = conclude(self._playbooks, None, text, None, "the program")
        # a file that is missing in the environment is no missing data
        if found.verdict == "not-an-env-problem" and str(prefix) not in (message or ""):
            return ProgramOutput(kind="elsewhere", why=found.reason or why)
        return ProgramOutput(kind="other", why=why)


def _is_again(reported: ReportedError, text: ReadText) -> bool:
    """Whether a text shows the reported error."""
    if reported.signature is not None and any(
        match.signature == reported.signature and not match.passing for match in text.matches
    ):
        return True
    said = text.failures.message
    return reported.message is not None and said is not None and _same(said, reported.message)


def _same(one: str, other: str) -> bool:
    return _CHANGING.sub("#", one) == _CHANGING.sub("#", other)
