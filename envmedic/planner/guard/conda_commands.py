"""Parser for the command lines of conda, mamba and micromamba. Pure. Their options are passed to conda's own dry run."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal

from envmedic.errors import InputError
from envmedic.model.answers.guard import CondaCommand, OtherPlaceCommand, PackageTool
from envmedic.planner.guard.command_options import CannotTell, Word, parse_options, words
from envmedic.planner.guard.typed_lines import did_you_mean

TOOLS: tuple[PackageTool, ...] = ("conda", "mamba", "micromamba")

# https://docs.conda.io/projects/conda/en/stable/commands/install.html
_CONDA = parse_options("""
-n --name ENVIRONMENT
-p --prefix PATH
-c --channel CHANNEL
-O --override-channels
--offline
--force --force-remove
--all --update-all
--no-deps
--only-deps
--no-pin
--force-reinstall
--update-deps
--freeze-installed --no-update-deps
--update-specs
--strict-channel-priority
--no-channel-priority
""")
_CONDA_WITHOUT_EFFECT = parse_options("""
-y --yes
-q --quiet
-v --verbose
-d --dry-run
--json
--copy
--solver NAME
""")
_CONDA_VERBS: dict[str, Literal["install", "update", "remove"]] = {
    "install": "install",
    "update": "update",
    "upgrade": "update",
    "remove": "remove",
    "uninstall": "remove",
}
_CONDA_PLACES = frozenset({"--name", "--prefix", "--channel", "--offline", "--override-channels"})
_OF_FILES = parse_options("""
--file FILE
-f --file FILE
--prune
""")
_ENVIRONMENTS = parse_options("""
--clone ENVIRONMENT
--no-default-packages
--platform PLATFORM
--subdir PLATFORM
""")
_MADE = "it makes another environment and leaves this one as it is"
_REMOVED = "it removes another environment and leaves this one as it is"


def read_conda(tool: PackageTool, arguments: Sequence[str]) -> CondaCommand | OtherPlaceCommand:
    """Parse the words after conda, mamba or micromamba.

    Raises CannotTell for options and specs that a dry run may carry out, InputError for another command.
    """
    text = next((item for item in arguments if not item.startswith("-")), "")
    if text == "env":
        return _read_env(tool, [item for item in arguments if item != "env"])
    if text == "create":
        found = list(words(arguments, _CONDA | _CONDA_WITHOUT_EFFECT | _OF_FILES | _ENVIRONMENTS, f"{tool} create"))
        return _other(tool, found, _MADE)
    verb = _CONDA_VERBS.get(text)
    if verb is None:
        raise _not_understood(tool, text, tuple(_CONDA_VERBS))
    found = list(words(arguments, _CONDA | _CONDA_WITHOUT_EFFECT | _OF_FILES, f"{tool} {text}"))
    ignored = {option.name for option in (*_CONDA_WITHOUT_EFFECT.values(), *_OF_FILES.values())}
    command = CondaCommand(
        tool=tool,
        verb=verb,
        specs=_values(found, "")[1:],
        channels=_values(found, "--channel"),
        override_channels="--override-channels" in {item.name for item in found},
        offline="--offline" in {item.name for item in found},
        options=tuple(item.name for item in found if item.name not in {"", *ignored, *_CONDA_PLACES}),
        name=next(iter(_values(found, "--name")), None),
        prefix=next(iter(_values(found, "--prefix")), None),
        files=_values(found, "--file"),
    )
    everything = "--update-all" in command.options
    if everything and verb == "remove":
        raise CannotTell("what conda removes with --all is not only packages: the environment itself goes")
    if not command.specs and not everything and not command.files:
        raise InputError(f"The command says nothing to {verb}", hint="Name a package, as conda would want it")
    for spec in command.specs:
        require_solvable(spec, tool)
    return command


def require_solvable(spec: str, tool: PackageTool) -> None:
    """Raise CannotTell for a spec that some releases of conda install at once, with link scripts, even in a dry run."""
    if "://" in spec or ".conda" in spec or ".tar.bz2" in spec or spec.startswith((".", "/", "~", "@")):
        raise CannotTell(f"{spec} is a file or an address, which {tool} may put in place without solving")


def _read_env(tool: PackageTool, arguments: Sequence[str]) -> CondaCommand | OtherPlaceCommand:
    """``conda env VERB …``, of which `update` changes an environment."""
    verb = next((item for item in arguments if not item.startswith("-")), "")
    verbs = ("update", "create", "remove", "list", "export", "config")
    if verb not in verbs:
        raise _not_understood(f"{tool} env", verb, verbs)
    if verb in {"list", "export", "config"}:
        return OtherPlaceCommand(tool=tool, why="it installs and removes nothing")
    found = list(words(arguments, _CONDA | _CONDA_WITHOUT_EFFECT | _OF_FILES, f"{tool} env {verb}"))
    if verb != "update":
        return _other(tool, found, _MADE if verb == "create" else _REMOVED)
    return CondaCommand(
        tool=tool,
        verb="install",
        name=next(iter(_values(found, "--name")), None),
        prefix=next(iter(_values(found, "--prefix")), None),
        environment_file=next(iter(reversed(_values(found, "--file"))), "environment.yml"),
        prune=any(item.name == "--prune" for item in found),
        offline=any(item.name == "--offline" for item in found),
    )


def _other(tool: PackageTool, found: Collection[Word], why: str) -> OtherPlaceCommand:
    name, prefix = (next(iter(_values(found, flag)), None) for flag in ("--name", "--prefix"))
    return OtherPlaceCommand(tool=tool, why=why, name=name, prefix=prefix)


def _values(found: Collection[Word], name: str) -> tuple[str, ...]:
    return tuple(item.value for item in found if item.name == name)


def _not_understood(program: str, verb: str, known: Sequence[str]) -> InputError:
    near = did_you_mean(verb, known) if verb else None
    return InputError(
        f"`{program} {verb}` is not understood" if verb else f"{program} is given no command",
        cause=f"did you mean `{program} {near}`?" if near else "envmedic foresees what installs, updates and removes",
        hint=f"Ask about one of {', '.join(f'`{program} {item}`' for item in known)}",
    )
