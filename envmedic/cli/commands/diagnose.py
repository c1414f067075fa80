"""``envmedic diagnose`` and ``envmedic facts``."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from envmedic.api import diagnosis, playbooks
from envmedic.api.context.settings import Settings
from envmedic.cli.context import agreed, prefix_of, settings_of, target_of
from envmedic.cli.output import CommandOutput
from envmedic.errors import ExitCode, InputError
from envmedic.model.findings import Diagnoses, Diagnosis
from envmedic.probe.prefix.targets import NoneActive
from envmedic.render.documents.diagnosis import diagnosis_lines
from envmedic.render.documents.facts import content_lines, facts_lines
from envmedic.render.text import Line, line

_VERDICT_EXIT = {"healthy": ExitCode.OK, "host": ExitCode.HOST}


def diagnose(args: argparse.Namespace, output: CommandOutput) -> int:
    """``envmedic diagnose``."""
    if args.log_only and not args.logs:
        raise InputError("--log-only needs a LOG", hint="Name a file, or `-` for standard input")
    settings = settings_of(args, output)
    # Raises InputError for an unknown id.
    if args.playbook and not settings.playbook_files:
        playbooks.show_playbook(settings, args.playbook)  # an id is matched anyway, if there is such a playbook
    found: tuple[Diagnosis, ...]
    if args.reproduce:
        found = (_reproduced(args, settings, output),)
    elif args.last:
        found = (_last(args, settings, output),)
    else:
        prefix = None if args.log_only else _prefix(args, settings, output)
        found = diagnosis.diagnose(settings, prefix, args.logs)
    document: Diagnosis | Diagnoses = found[0] if len(found) == 1 else Diagnoses(diagnoses=found)
    lines = [
        row
        for item in found
        for row in [*_log_title(item, len(found)), *diagnosis_lines(item, _plan(args, item), detail=output.verbose)]
    ]
    output.document(document, lines)
    # of several texts, the one with the highest exit code decides
    return max(int(_VERDICT_EXIT.get(item.verdict, ExitCode.PROBLEM)) for item in found)


def _plan(args: argparse.Namespace, found: Diagnosis) -> str:
    """The command that plans with the same text, whose error has to be gone then; empty where it can't be read again."""
    if found.prefix is None:
        return ""
    if args.last:
        return shlex.join(["envmedic", "plan", "--last", "-p", found.prefix])
    by_text = any(item.signature is not None for first in found.findings[:1] for item in first.with_consequences)
    named = found.log if found.log in args.logs and found.log != "-" else None
    return shlex.join(["envmedic", "plan", "--log", named, "-p", found.prefix]) if named and by_text else ""


def _prefix(args: argparse.Namespace, settings: Settings, output: CommandOutput) -> Path | None:
    """The environment; None with a word on what it would add, where there is a text and no environment."""
    try:
        return prefix_of(target_of(args), settings, output)
    except NoneActive as error:
        if not args.logs:
            raise
        output.narrate("no environment is named and none is active: only the text is read")
        output.narrate(f"An environment would confirm or refute it, and allow a plan. {error.hint}")
        return None


def _reproduced(args: argparse.Namespace, settings: Settings, output: CommandOutput) -> Diagnosis:
    from envmedic.api import running

    if args.logs or args.log_only or args.last or not args.user_command:
        raise InputError(
            "--reproduce takes a command in the place of a LOG",
            hint="Give it after `--`: envmedic diagnose --reproduce -- python train.py",
        )
    target, settings = agreed(target_of(args), settings)
    return running.diagnose_reproduced(settings, prefix_of(target, settings, output), args.user_command)


def _last(args: argparse.Namespace, settings: Settings, output: CommandOutput) -> Diagnosis:
    from envmedic.api.planning import cases

    if args.logs or args.log_only:
        raise InputError("--last brings a text of its own", hint="Leave out --last, or LOG and --log-only")
    return cases.diagnose_last(settings, prefix_of(target_of(args), settings, output))


def _log_title(found: Diagnosis, count: int) -> list[Line]:
    return [line(f"== {found.log}")] if count > 1 and found.log else []


def facts(args: argparse.Namespace, output: CommandOutput) -> int:
    """``envmedic facts``."""
    from envmedic.api.context.gpu_condition import with_condition
    from envmedic.api.context.observation import observe, observe_contents

    if args.host_only and args.content:
        raise InputError("--content is about an environment, --host-only about the host", hint="Leave out one of them")
    settings = settings_of(args, output)
    prefix = None if args.host_only else prefix_of(target_of(args), settings, output)
    observed = observe_contents(settings, observe(settings, prefix))
    if args.content and observed.content is not None:
        output.document(observed.content, content_lines(observed.content))
        return int(ExitCode.OK)
    observed = with_condition(settings, observed)
    output.document(observed, facts_lines(observed))
    return int(ExitCode.OK)
