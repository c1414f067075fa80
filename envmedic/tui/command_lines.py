"""The lines of the command-line interface that do what the terminal UI does."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from envmedic.api.context.settings import TORCH_INDEX, RepairRequest
from envmedic.errors import InputError
from envmedic.model.plan import Plan
from envmedic.model.registries.installers import DEFAULT_OF_CONDA
from envmedic.render.next_command import apply_command
from envmedic.tui.session import AppState

if TYPE_CHECKING:
    from envmedic.render.pages.playbooks import Book


def diagnose_line(session: AppState) -> str:
    """``envmedic diagnose`` for the current text and environment."""
    words = ["envmedic", "diagnose"]
    source = session.source
    if session.chosen:
        words += ["-p", session.chosen]
    elif source is None:
        return "envmedic envs"
    elif source.kind != "command":
        words.append("--log-only")
    if source is not None:
        again = ["--last"] if source.kept else ["--reproduce", "--", *source.argv]
        words += again if source.kind == "command" else [source.name]
    return shlex.join(words)


def plan_line(session: AppState, wish: RepairRequest) -> str:
    """``envmedic plan`` for `wish` on the chosen environment."""
    words = ["envmedic", "plan"]
    # --reproduce and its command come last: all words after `--` belong to the command.
    words += ["--playbook", wish.playbook] if wish.playbook else []
    words += ["--log", wish.log] if wish.log else []
    words += ["--last"] if wish.last else []
    words += ["--way", wish.way] if wish.way else []
    words += ["-p", session.chosen]
    words += ["--reproduce", "--", *wish.command] if wish.command else []
    return shlex.join(words)


def apply_line(session: AppState, plan: Plan, wish: RepairRequest) -> str:
    """``envmedic apply`` for what `plan` was made from."""
    # `apply_command` builds the same line for `envmedic plan`, from parsed options.
    from argparse import Namespace

    settings, options = session.settings, session.options
    installers = [settings.installer, *(name for name in [settings.conda_installer] if name != DEFAULT_OF_CONDA)]
    namespace = Namespace(
        playbook=wish.playbook,
        log=wish.log,
        last=wish.last,
        way=wish.way,
        user_command=wish.command,
        find_links=settings.find_links,
        torch_index=settings.torch_index if settings.torch_index != TORCH_INDEX else None,
        offline=settings.offline,
        installer=installers,
        pin=settings.pin,
        deep=settings.deep,
        timeout=settings.timeout_s,
        no_gpu=options.no_gpu,
        allow=options.allow,
    )
    return apply_command(plan, namespace)


def lock_line(prefix: str, form: str, folder: str, name: str, *, incomplete: bool = False) -> str:
    """``envmedic lock`` of the environment at `prefix` into a file of `folder`."""
    path = f"{folder.rstrip('/')}/{name}" if folder.strip() else name
    allow = ["--allow-incomplete"] if incomplete else []
    return shlex.join(["envmedic", "lock", "--format", form, "-o", path, *allow, "-p", prefix])


def watch_line(session: AppState, command: str) -> str:
    """``envmedic run`` of a command line in the chosen environment, as far as it is one."""
    try:
        argv = words(command)
    except InputError:
        return ""
    return shlex.join(["envmedic", "run", "-p", session.chosen, "--", *argv])


def words(line: str) -> list[str]:
    """The words of a command line, as a shell splits them. Raises InputError."""
    try:
        found = shlex.split(line)
    except ValueError as error:
        raise InputError(f"{line!r} is no command line", cause=str(error), hint="Close every quote") from error
    if not found:
        raise InputError("There is no command to run", hint="Type it as in the shell: python train.py")
    return found


def history_line(prefix: str) -> str:
    """``envmedic history``."""
    return shlex.join(["envmedic", "history", "-p", prefix])


def travel_line(way: str, prefix: str, to: str | None, *allow: str) -> str:
    """``envmedic undo`` or ``redo``, to a generation where one is named."""
    lifted = [word for name in allow for word in ("--allow", name)]
    return shlex.join(["envmedic", way, "-p", prefix, *lifted, *([to] if to else [])])


def prune_line(prefix: str, keep: int) -> str:
    """``envmedic prune`` of all kept trees but `keep`."""
    return shlex.join(["envmedic", "prune", "-p", prefix, "--keep", str(keep)])


def diff_line(prefix: str, before: str | None, after: str | None) -> str:
    """``envmedic diff`` of two states."""
    return shlex.join(["envmedic", "diff", "-p", prefix, *filter(None, (before, after) if before else ())])


def playbook_line(book: Book) -> str:
    """``envmedic explain`` of a playbook, ``envmedic playbooks validate`` of a file of the user's."""
    if book.own:
        return shlex.join(["envmedic", "playbooks", "validate", book.path])
    return shlex.join(["envmedic", "explain", book.id])


def copy_line(book: Book) -> str:
    """The shell command that copies a shipped playbook to the user's own."""
    return f"envmedic playbooks show {shlex.quote(book.id)} > ${{XDG_CONFIG_HOME:-~/.config}}/envmedic/playbooks/{book.id}.yaml"
