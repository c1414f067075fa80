"""Commands that answer questions and change nothing: ``envmedic explain`` and ``envmedic check``."""

from __future__ import annotations

import argparse

from envmedic.api import playbooks
from envmedic.api.context.settings import Settings
from envmedic.api.knowledge import compatibility, explanation
from envmedic.cli.context import prefix_of, settings_of, target_of
from envmedic.cli.output import CommandOutput
from envmedic.errors import ExitCode
from envmedic.render.documents.compatibility import compatibility_lines
from envmedic.render.documents.explanation import explanation_lines


def explain(args: argparse.Namespace, output: CommandOutput) -> int:
    """``envmedic explain FAULT|PLAYBOOK``."""
    files = (args.topic,) if playbooks.is_playbook_file(args.topic) else ()
    found = explanation.explain(Settings(stream=output.stream, playbook_files=files), args.topic)
    output.document(found, explanation_lines(found))
    return int(ExitCode.OK)


def check(args: argparse.Namespace, output: CommandOutput) -> int:
    """``envmedic check REQ…``."""
    settings = settings_of(args, output)
    found = compatibility.check(settings, prefix_of(target_of(args), settings, output), args.requirements)
    output.document(found, compatibility_lines(found))
    return int(ExitCode.OK if found.yes else ExitCode.PROBLEM)
