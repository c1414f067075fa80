"""``envmedic fleet survey|diagnose|drift|status``: answers from documents that others collected; no connection is opened."""

from __future__ import annotations

import argparse
from pathlib import Path

from envmedic.api.context.settings import Settings
from envmedic.api.fleet import collected
from envmedic.cli.output import CommandOutput
from envmedic.errors import ExitCode
from envmedic.render.documents.answers.fleet import drift_lines, fleet_diagnosis_lines, status_lines, survey_lines


def fleet(args: argparse.Namespace, output: CommandOutput) -> int:
    """Run the verb; 1 where a machine is silent, has drifted, or is not repaired."""
    expected = Path(args.nodes) if args.nodes else None
    place = Path(args.place)
    if args.verb == "survey":
        survey = (
            collected.collecting(args.on, args.node_prefix, place) if args.on else collected.survey(place, expected)
        )
        output.document(survey, survey_lines(survey))
        return _exit(good=not survey.silent)
    if args.verb == "diagnose":
        from envmedic.api.fleet import diagnosis

        judged = diagnosis.diagnose(Settings(stream=output.stream), place, args.log, expected)
        output.document(judged, fleet_diagnosis_lines(judged))
        return _exit(good=judged.healthy)
    if args.verb == "drift":
        drift = collected.drift(place, args.against, expected)
        output.document(drift, drift_lines(drift))
        return _exit(good=not drift.drifted and not drift.silent)
    status = collected.status(place, expected)
    output.document(status, status_lines(status))
    return _exit(good=status.done)


def _exit(*, good: bool) -> int:
    return int(ExitCode.OK if good else ExitCode.PROBLEM)
