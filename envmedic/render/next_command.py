"""The command line that a user types next, with the options that matter for it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from envmedic.model.plan import Plan
from envmedic.model.registries.installers import DEFAULT

if TYPE_CHECKING:
    import argparse

_FLAGS = ("last", "offline", "no_gpu", "pin", "deep")
_VALUES = ("pass_after", "torch_index", "installer", "timeout")
_DEFAULTS = {"installer": DEFAULT}


_OF_ENVIRONMENT = re.compile(
    r"`envmedic (?P<command>apply|diagnose|diff|facts|guard|history|lock|plan|prune|recover|redo|report|snapshot|undo|verify"
    r"|(?:pip|uv|conda)(?= [^`\s]+ [^`\s]))(?P<rest>[^`]*)`"
)
"""A command line in a sentence that is about an environment."""
_OF_OTHERS = ("pip", "uv", "conda")
"""What stands after these is for the tool of that name."""


def aimed(text: str, target: Sequence[str]) -> str:
    """`text` with `target`, the words that name an environment, in the commands that it shows and that name none."""

    def with_target(found: re.Match[str]) -> str:
        own, dashes, others = found["rest"].partition(" -- ")
        if {"--help", "-p", "-n", "--prefix", "--name", "--python"} & {*own.split()}:
            return found[0]
        if found["command"] in _OF_OTHERS:
            return f"`envmedic {found['command']} {shlex.join(target)}{own}{dashes}{others}`"
        return f"`envmedic {found['command']}{own} {shlex.join(target)}{dashes}{others}`"

    return _OF_ENVIRONMENT.sub(with_target, text) if target else text


def apply_command(plan: Plan, args: argparse.Namespace) -> str:
    """The command that carries out `plan`: the same request on the same environment, or the plan file."""
    # without a GPU the command would be refused at its start: what it has to accept is in it
    unproven = any(item.kind == "unproven" for item in plan.obstacles)
    options = {**vars(args), **({"no_gpu": True} if unproven else {})}
    # the plan file has the wish, the sources and the environment; only the way to run it is still open
    if options.get("output"):
        words = ["envmedic", "apply", options["output"], *_how(options, ("no_gpu", "offline"), ("timeout",))]
        return shlex.join(words)
    words = ["envmedic", "apply", *_wish(plan, options)]
    words += [word for source in options.get("find_links") or () for word in ("--find-links", source)]
    words += [*_how(options, _FLAGS, _VALUES), "-p", plan.prefix]
    if options.get("user_command"):
        words += ["--reproduce", "--", *options["user_command"]]
    return shlex.join(words)


def _wish(plan: Plan, options: dict[str, object]) -> list[str]:
    """The playbook or the log; a log that came from standard input has become a playbook."""
    log = options.get("log")
    playbook = options.get("playbook") or (plan.playbook if log == "-" else None)
    words = ["--playbook", str(playbook)] if playbook else []
    words += ["--log", str(log)] if log and log != "-" else []
    words += ["--policy", str(options["policy"])] if options.get("policy") else []
    return words + (["--way", str(options["way"])] if options.get("way") else [])


def _how(options: dict[str, object], flags: tuple[str, ...], values: tuple[str, ...]) -> list[str]:
    words = [f"--{name.replace('_', '-')}" for name in flags if options.get(name)]
    allowed = options.get("allow")
    words += [
        word for name in (allowed if isinstance(allowed, list | tuple) else ()) for word in ("--allow", str(name))
    ]
    for name in values:
        given = options.get(name)
        for value in given if isinstance(given, list) else [given]:
            # only what differs: a short command line is read before it is run
            if value is not None and value != _DEFAULTS.get(name):
                words += [f"--{name.replace('_', '-')}", f"{value:g}" if isinstance(value, float) else str(value)]
    return words
