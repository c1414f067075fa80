"""Commands that answer questions and change nothing: ``envmedic explain`` and ``envmedic check``."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import msgspec

from envmedic.api import playbooks
from envmedic.api.context.settings import Settings
from envmedic.api.knowledge import compatibility, explanation
from envmedic.api.locking import fitting
from envmedic.cli.context import prefix_of, settings_of, target_of
from envmedic.cli.output import CommandOutput
from envmedic.errors import ExitCode, InputError
from envmedic.render.documents.answers.fit import fits_lines, sarif
from envmedic.render.documents.compatibility import compatibility_lines
from envmedic.render.documents.explanation import explanation_lines


def explain(args: argparse.Namespace, output: CommandOutput) -> int:
    """``envmedic explain FAULT|PLAYBOOK``."""
    files = (args.topic,) if playbooks.is_playbook_file(args.topic) else ()
    found = explanation.explain(Settings(stream=output.stream, playbook_files=files), args.topic)
    output.document(found, explanation_lines(found))
    return int(ExitCode.OK)


def check(args: argparse.Namespace, output: CommandOutput) -> int:
    """``envmedic check REQ…`` and ``envmedic check -r FILE…``."""
    settings = settings_of(args, output)
    if args.files:
        return _check_files(args, settings, output)
    if not args.requirements:
        raise InputError("Nothing is asked", hint="Name a requirement such as 'torch>=2.7', or a file with -r")
    if args.gpu or args.driver or args.sarif:
        raise InputError(
            "--gpu, --driver and --sarif are about a file", hint="Name one with -r; --host FILE names a machine"
        )
    found = compatibility.check(settings, prefix_of(target_of(args), settings, output), args.requirements)
    output.document(found, compatibility_lines(found))
    return int(ExitCode.OK if found.yes else ExitCode.PROBLEM)


def _check_files(args: argparse.Namespace, settings: Settings, output: CommandOutput) -> int:
    if args.name or args.prefix:
        raise InputError("-r is about a file, not about an environment", hint="Leave out -n and -p")
    machine = fitting.Machine(capabilities=tuple(args.gpu), driver=args.driver, python=_python(args.python))
    # files that stand without -r behind others, as hooks of pre-commit append them
    files = [*args.files, *args.requirements]
    found = fitting.check_files(settings, [Path(name) for name in files], machine)
    if args.sarif:
        try:
            Path(args.sarif).write_bytes(msgspec.json.format(msgspec.json.encode(sarif(found)), indent=2) + b"\n")
        except OSError as error:
            raise InputError(
                f"{args.sarif} cannot be written", cause=error.strerror, hint="Name another file"
            ) from error
    output.document(found, fits_lines(found))
    return int(ExitCode.OK if found.yes else ExitCode.PROBLEM)


def _python(text: str | None) -> str | None:
    """``major.minor`` of a version. Raises InputError for a path: what a file names is judged without running anything."""
    if text is None:
        return None
    version = re.fullmatch(r"(\d+\.\d+)(\.\d+)?", text)
    if version is None:
        raise InputError(f"{text} is no version of Python", hint="With -r write it as --python 3.12")
    return version[1]
