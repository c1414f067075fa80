"""Use case ``fleet diagnose``: what is wrong in each class of machines, by the facts that they sent."""

from __future__ import annotations

from pathlib import Path

import msgspec

from envmedic.analysis.fleet import machines
from envmedic.api.context.settings import Settings
from envmedic.api.diagnosis import read_output
from envmedic.api.fleet import collected
from envmedic.api.playbooks import load_playbooks
from envmedic.diagnosis import findings
from envmedic.model.answers.fleet import ClassDiagnosis, FleetDiagnosis
from envmedic.model.base import from_json
from envmedic.model.facts import Facts
from envmedic.model.playbook import NO_TEXT
from envmedic.playbook.matching.log_stream import read_lines


def diagnose(settings: Settings, folder: Path, log: str | None, expected: Path | None = None) -> FleetDiagnosis:
    """Return the diagnosis of each class, by the facts of its first machine, and the text `log`. Raises InputError.

    Facts alone count: nothing of the environments is on this machine to look further at.
    """
    found, silent = collected.documents(folder, expected)
    survey = machines.survey({node: item.part for node, item in found.items()}, silent)
    playbooks = load_playbooks(settings)
    text = NO_TEXT if log is None else read_output(read_lines(log), playbooks)
    answers = []
    for item in survey.classes:
        node = item.nodes[0]
        facts = from_json(found[node].data, Facts, source=f"The document of {node}")
        prefix = facts.environment.prefix if facts.environment is not None else None
        judged = findings.diagnose(text, facts, playbooks, prefix=prefix, log=log)
        answers.append(ClassDiagnosis(machines=item, diagnosis=msgspec.structs.replace(judged, facts=None)))
    return FleetDiagnosis(classes=tuple(answers), silent=survey.silent)
