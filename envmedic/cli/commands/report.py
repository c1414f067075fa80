"""``envmedic report``: a repair in short, as Markdown, a picture and a page."""

from __future__ import annotations

import argparse
from pathlib import Path

from envmedic.api import reporting
from envmedic.cli.context import prefix_of, settings_of, target_of
from envmedic.cli.output import CommandOutput
from envmedic.errors import ExitCode, InputError
from envmedic.model.answers.report import Report, ReportForm
from envmedic.render.reports.forms import TEXTS

_ENDS: dict[str, ReportForm] = {".md": "markdown", ".svg": "svg", ".html": "html"}


def report(args: argparse.Namespace, output: CommandOutput) -> int:
    """``envmedic report``."""
    settings = settings_of(args, output)
    prefix = prefix_of(target_of(args), settings, output)
    found = reporting.report(prefix, args.transaction)
    if args.output is None:
        output.text(found, TEXTS[args.format or "markdown"](found).splitlines())
        return int(ExitCode.OK)
    written = _written(found, Path(args.output), args.format)
    if output.json:
        output.text(found, [])
    output.narrate("\n".join(f"wrote {path}" for path in written))
    return int(ExitCode.OK)


def _written(found: Report, place: Path, form: ReportForm | None) -> list[Path]:
    """Write the file, or all forms into a directory. Raises InputError."""
    if place.is_dir():
        forms = [form] if form else list(TEXTS)
        return reporting.write({place / reporting.FILES[item]: TEXTS[item](found) for item in forms})
    form = form or _ENDS.get(place.suffix.lower())
    if form is None:
        raise InputError(
            f"{place} is no directory, and its name tells no form of a report",
            hint="End it in .md, .svg or .html, or give --format; a directory gets all three",
        )
    return reporting.write({place: TEXTS[form](found)})
