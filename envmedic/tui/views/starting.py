"""What is to be known before a repair begins."""

from __future__ import annotations

from envmedic.cli.render.plan import change_rows
from envmedic.cli.render.style import size, table
from envmedic.errors import EnvironmentBusy, EnvmedicError
from envmedic.model.facts import Host
from envmedic.model.plan import Plan
from envmedic.model.ports import Means
from envmedic.tui.text import Line, Part, line, visible
from envmedic.tui.views.errors import error_view

_CLONES = {
    "reflink": "shared blocks: it takes next to no space",
    "link": "hard links, with real copies of what is changed in place",
    "copy": "a full copy",
}
_STAGINGS = {
    "namespace": "steps and checks see the copy at the environment's own path",
    "relocate": "steps and checks run beside it, and paths are rewritten",
}


def gpu_missing(plan: Plan, host: Host | None) -> bool:
    """Whether the plan is to be proven on a GPU and this machine has none."""
    return plan.gpu_checks and host is not None and not host.gpus


def means_lines(means: Means | EnvmedicError | None) -> list[Line]:
    """How it would be carried out: clone, staging, swap, disk; or why it cannot be now."""
    if means is None:
        return [line("  … trying what works here", "dim")]
    if isinstance(means, EnvmedicError):
        return [line("! It could not begin now:", "warn"), *((Part("  "), *row) for row in error_view(means))]
    swap = "in one step" if means.exchange == "exchange" else "by two renames: for a moment the path does not exist"
    return [
        _row("copy  ", f"{_CLONES[means.clone]} (up to {size(means.clone_bytes)})"),
        _row("staged", _STAGINGS[means.staging]),
        _row("swap  ", swap),
        *(line(f"  ! {note}", "warn") for note in means.notes),
    ]


def _row(label: str, text: str) -> Line:
    return (Part(f"  {label}  ", "dim"), Part(visible(text)))


def start_lines(plan: Plan, means: Means | EnvmedicError | None, host: Host | None) -> list[Line]:
    """What will happen, and what is accepted with a yes."""
    lines = [
        line("A copy of the environment is repaired and checked. Only when it has proven", "bold"),
        line("itself does it take the environment's place, and you are asked before.", "bold"),
        line(""),
        line(plan.prefix),
        *map(line, table(change_rows(plan.changes))),
    ]
    if plan.download_bytes:
        lines.append(line(f"  download {size(plan.download_bytes)}", "dim"))
    if isinstance(means, EnvironmentBusy):
        lines += [line(""), line(f"! {means.summary}. They may mix old and new files until started again:", "warn")]
        lines += [line(f"    {text}") for text in means.details]
        lines.append(line("  y goes on all the same (--allow in-use).", "warn"))
    elif isinstance(means, EnvmedicError):
        lines += [line(""), *error_view(means)]
    if gpu_missing(plan, host):
        lines += [
            line(""),
            line("! No GPU is visible here, so nothing can be proven on one.", "warn"),
            line("  y accepts that (--no-gpu); the record will say: GPU not verified.", "warn"),
        ]
    return lines
