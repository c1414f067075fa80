"""The questions before a repair begins."""

from __future__ import annotations

from envmedic.errors import EnvironmentBusy, EnvmedicError, PreflightError
from envmedic.model.facts import Host
from envmedic.model.plan import Plan
from envmedic.model.ports import Means
from envmedic.model.registries.modes import CLONE_MODES, EXCHANGE_METHODS, PROTECTIONS, STAGING_MODES, AllowName
from envmedic.render.changes import change_lines
from envmedic.render.documents.plan import program_lines
from envmedic.render.pages.error import error_page
from envmedic.render.style import size
from envmedic.render.text import Line, TextPart, line, part, visible


def gpu_missing(plan: Plan, host: Host | None) -> bool:
    """Whether checks of the plan need a GPU and this machine has none."""
    return plan.gpu_checks and host is not None and not host.gpus


def means_lines(means: Means | EnvmedicError | None) -> list[Line]:
    """Clone, staging, swap and disk of a repair that would begin now; or why it could not begin."""
    if means is None:
        return [line("  … trying what works here", "dim")]
    if isinstance(means, EnvmedicError):
        return [line("! It could not begin now:", "warn"), *((TextPart("  "), *row) for row in error_page(means))]
    return [
        _row("copy  ", f"{CLONE_MODES[means.clone]} (up to {size(means.clone_bytes)})"),
        _row("staged", STAGING_MODES[means.staging]),
        _row("swap  ", EXCHANGE_METHODS[means.exchange]),
        *(line(f"  ! {note}", "warn") for note in means.notes),
    ]


def _row(label: str, text: str) -> Line:
    return (TextPart(f"  {label}  ", "dim"), part(text))


def protection(means: Means | EnvmedicError | None) -> AllowName | None:
    """The protection that the user may lift before a repair can begin; None without one.

    Running programs are no protection here: the go-ahead itself names them.
    """
    name = means.allow if isinstance(means, PreflightError) else None
    # an error carries a plain text; only a known protection can be lifted
    return next((item for item in PROTECTIONS if item == name), None)


def merely_found_question(prefix: str) -> list[Line]:
    """The risk of a plan for an environment that the user has not named."""
    return [
        line(visible(prefix), "bold"),
        line(""),
        line("envmedic found it nearby; you have not named it, so envmedic has only read its files so far."),
        line(
            "A plan follows its own settings (pip.conf says where packages come from) and starts its Python. If it "
            "came with a project of somebody else's, both may be theirs."
        ),
        line(""),
        line("y makes the plan, which changes nothing yet."),
    ]


def protected_lines(error: PreflightError, name: AllowName, command: str) -> list[Line]:
    """The protection, the risk of lifting it, and the command line that lifts it."""
    return [
        line(error.summary, "bold"),
        line(f"{error.cause}." if error.cause else ""),
        line(""),
        line(f"! {PROTECTIONS[name]}", "warn"),
        line(
            f"  y lifts the protection for this repair (--allow {name}). You are asked again before it begins.", "warn"
        ),
        line(""),
        line(f"$ {command}", "dim"),
    ]


def start_lines(plan: Plan, means: Means | EnvmedicError | None, host: Host | None) -> list[Line]:
    """The repair in short, and the risks that a yes accepts."""
    lines = [
        line(
            "envmedic repairs and checks a copy of the environment. The copy takes its place only if it passes, and only "
            "after you have agreed.",
            "bold",
        ),
        line(""),
        line(plan.prefix),
        *change_lines(plan.changes),
    ]
    if plan.download_bytes:
        lines.append(line(f"  download {size(plan.download_bytes)}", "dim"))
    lines += [row for check in plan.checks for row in program_lines(check)]
    if isinstance(means, EnvironmentBusy):
        lines += [line(""), line(f"! {means.summary}. They may mix old and new files until started again:", "warn")]
        lines += [line(f"    {text}") for text in means.details]
        lines.append(line("  y goes on all the same (--allow in-use).", "warn"))
    elif isinstance(means, EnvmedicError):
        lines += [line(""), *error_page(means)]
    if gpu_missing(plan, host):
        lines += [
            line(""),
            line("! No GPU is visible here, so nothing can be proven on one.", "warn"),
            line("  y accepts that (--no-gpu); the record will say: GPU not verified.", "warn"),
        ]
    return lines
