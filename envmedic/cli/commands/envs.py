"""``envmedic envs``."""

from __future__ import annotations

import argparse

from envmedic.api import environments
from envmedic.cli.output import CommandOutput
from envmedic.errors import ExitCode
from envmedic.render.documents.environments import environments_lines


def envs(_args: argparse.Namespace, output: CommandOutput) -> int:
    """List the environments that are found here."""
    found = environments.list_environments()
    output.document(found, environments_lines(found))
    return int(ExitCode.OK)
