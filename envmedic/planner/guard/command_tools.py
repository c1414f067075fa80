"""Parsers for the command lines of pip and of uv's interface for pip. Pure.

uv's options come from its own help. pip is never run, since it is code of
the environment. Its options are in a table, as far as they change the installation or are in frequent use.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Literal

from packaging.requirements import InvalidRequirement

from envmedic import limits
from envmedic.errors import InputError
from envmedic.model.answers.guard import PipCommand
from envmedic.planner.guard.command_options import CannotTell, Option, Word, parse_options, words
from envmedic.planner.guard.typed_lines import did_you_mean

UvHelp = Callable[[str], str]
"""The help text of a command of uv, such as ``pip install``. Raises InstallerError."""

# https://pip.pypa.io/en/stable/cli/pip_install/
_PIP = parse_options("""
-r --requirement FILE
-c --constraint FILE
-e --editable PROJECT
-i --index-url URL
--extra-index-url URL
--no-index
-f --find-links URL
--trusted-host HOST
-U --upgrade
--upgrade-strategy STRATEGY
--pre
--no-deps --no-dependencies
--force-reinstall -I --ignore-installed
--require-hashes
--only-binary NAMES
--no-binary NAMES
--prefer-binary
--group GROUP
--isolated
--python PYTHON
-t --target DIR
--prefix DIR
--root DIR
--user
""")
_PIP_WITHOUT_EFFECT = parse_options("""
-q --quiet
-v --verbose
-y --yes
--dry-run
--no-input
--no-color
--no-cache-dir
--no-build-isolation
--break-system-packages
--disable-pip-version-check
--no-warn-script-location
--root-user-action ACTION
--progress-bar MODE
--timeout SECONDS
--retries NUMBER
""")
_UV_HIDDEN = """
--pre
--force-reinstall
--native-tls
--trusted-host HOST
"""
"""Spellings that uv accepts without showing them in its help, beside singular forms such as ``--requirement``."""
_UV_LEFT_OUT = frozenset(
    [
        "--quiet",
        "--verbose",
        "--color",
        "--no-progress",
        "--no-python-downloads",
        "--dry-run",
        "--output-format",
        "--system",
        "--break-system-packages",
        "--no-break-system-packages",
        "--no-build",
        "--only-binary",
        "--native-tls",
    ]
)
"""Options that the dry run sets itself, and options of its output."""
_ELSEWHERE = frozenset(
    [
        "--target",
        "--prefix",
        "--root",
        "--python-version",
        "--python-platform",
        "--directory",
        "--project",
        "--check",
    ]
)
"""Options of pip and uv with which another place is changed, or packages are chosen for another Python."""
# a build runs code of the project, so the guard never starts one to learn its requirements
_FROM_SOURCE = "--no-binary"
# `uv pip compile` reads these from pyproject.toml of the working directory
_NEEDS_PROJECT = frozenset({"--group", "--extra", "--all-extras"})

_VERBS = ("install", "uninstall", "sync")


def read_pip(arguments: Sequence[str]) -> PipCommand:
    """Parse the words after ``pip``. Raises CannotTell for an unknown option, InputError for another command."""
    # for messages alone; the parse below finds the real first argument, since an option's value may look like a verb
    verb = next((text for text in arguments if text in _VERBS[:2]), "")
    found = list(words(arguments, _PIP | _PIP_WITHOUT_EFFECT, f"pip {verb}".strip()))
    user = any(item.name == "--user" for item in found)
    found = [item for item in found if item.name != "--user"]
    asked = _values(found, "")
    if asked[:1] != (verb,):
        raise _other_verb("pip", "".join(asked[:1]))
    _refuse_unforeseeable(found, f"pip {verb}")
    names = {item.name for item in found}
    reworded = {"--pre": "--prerelease=allow", "--force-reinstall": "--reinstall", "--ignore-installed": "--reinstall"}
    kept = {"--no-dependencies": "--no-deps", "--require-hashes": "--require-hashes", **reworded}
    # pip -U leaves dependencies alone that do well enough; uv -U does not, nor does pip's eager strategy
    upgrade: Literal["no", "named", "all"] = "named" if "--upgrade" in names else "no"
    return _made(
        PipCommand(
            tool="pip",
            verb="install" if verb == "install" else "uninstall",
            requirements=asked[1:],
            files=_values(found, "--requirement"),
            editables=_values(found, "--editable"),
            constraints=_values(found, "--constraint"),
            upgrade="all" if upgrade == "named" and "eager" in _values(found, "--upgrade-strategy") else upgrade,
            index_url=next(iter(reversed(_values(found, "--index-url"))), None),
            extra_index_urls=tuple(url for text in _values(found, "--extra-index-url") for url in text.split()),
            find_links=_values(found, "--find-links"),
            trusted_hosts=_values(found, "--trusted-host"),
            no_index="--no-index" in names,
            only_wheels="--prefer-binary" in names or ":all:" in _values(found, "--only-binary"),
            isolated="--isolated" in names,
            options=(
                *(kept[item.name] for item in found if item.name in kept),
                *(f"{item.name}={item.value}" for item in found if item.name == "--group"),
            ),
            sources=("--prerelease=allow",) if "--pre" in names else (),
            python=next(iter(reversed(_values(found, "--python"))), None),
            user=user,
        )
    )


def read_uv(arguments: Sequence[str], uv_help: UvHelp) -> PipCommand:
    """Parse the words after ``uv``, `pip` among them. Raises CannotTell for an option without help, InputError for another command."""
    verb = next((text for text in arguments if text in _VERBS), "")
    # before uv is asked for the help of a subcommand that it does not have under `pip`
    if not verb:
        raise _other_verb("uv pip", "".join(arguments[arguments.index("pip") + 1 :][:1]))
    found = list(words(arguments, _of_uv(uv_help(f"pip {verb}")), f"uv pip {verb}"))
    asked = _values(found, "")
    if asked[:2] != ("pip", verb):
        raise _other_verb("uv pip", "".join(asked[1:2]))
    _refuse_unforeseeable(found, f"uv pip {verb}")
    names = {item.name for item in found}
    taken = {"", "--requirements", "--editable", "--python", "--upgrade", *_UV_LEFT_OUT}
    told = [item for item in found if item.name not in taken]
    # `compile` has the options on where distributions come from and which, and none on how to install them
    compiled = _of_uv(uv_help("pip compile")).keys() - _NEEDS_PROJECT
    return _made(
        PipCommand(
            tool="uv",
            verb="sync" if verb == "sync" else "install" if verb == "install" else "uninstall",
            requirements=asked[2:],
            files=_values(found, "--requirements"),
            editables=_values(found, "--editable"),
            upgrade="all" if "--upgrade" in names else "no",
            only_wheels="--no-build" in names or ":all:" in _values(found, "--only-binary"),
            options=tuple(map(_joined, told)),
            sources=tuple(_joined(item) for item in told if item.name in compiled),
            python=next(iter(reversed(_values(found, "--python"))), None),
        )
    )


def _of_uv(text: str) -> dict[str, Option]:
    known = parse_options(text) | parse_options(_UV_HIDDEN)
    return {flag.removesuffix("s"): option for flag, option in known.items() if option.value} | known


def _joined(item: Word) -> str:
    return {"--pre": "--prerelease=allow"}.get(item.name, f"{item.name}={item.value}" if item.value else item.name)


def _made(command: PipCommand) -> PipCommand:
    """Return `command`. Raises InputError where it requests nothing, or nothing that can be parsed."""
    group = any(text.startswith("--group=") for text in command.options)
    if not (command.requirements or command.files or command.editables or group):
        raise InputError(
            f"The command says nothing to {command.verb}",
            hint=f"Name a requirement or a file, as `{command.tool}` would want it",
        )
    # the arguments of `uv pip sync` are files, not requirements
    for text in command.requirements if command.verb != "sync" else ():
        # a local project may have extras: ./project[extra]
        if not _is_requirement(text) and not _is_location(text.partition("[")[0]):
            raise InputError(
                f"{text!r} is not a requirement",
                cause=f"`{command.tool} {command.verb}` could not read it either",
                hint="Write it as pip does: 'flash-attn', 'torch>=2.7', ./path, https://…",
            )
    return command


def _is_requirement(text: str) -> bool:
    try:
        limits.parsed(text)
    except InvalidRequirement:
        return False
    return True


def _is_location(text: str) -> bool:
    """Whether a word is a path or URL rather than a requirement by name."""
    return "://" in text or "/" in text or text in {".", ".."} or text.endswith((".whl", ".tar.gz", ".zip"))


def _refuse_unforeseeable(found: Collection[Word], program: str) -> None:
    if any(item.name == _FROM_SOURCE for item in found):
        raise CannotTell(f"{program} {_FROM_SOURCE} would build from source, and only that tells what it needs")
    flag = next((item.name for item in found if item.name in _ELSEWHERE), None)
    if flag is not None:
        raise CannotTell(
            f"what {program} does with {flag} cannot be told for this environment",
            cause="It changes another place, or chooses for another Python",
            hint=f"Ask about the command without {flag}",
        )


def _values(found: Collection[Word], name: str) -> tuple[str, ...]:
    return tuple(item.value for item in found if item.name == name)


def _other_verb(program: str, verb: str) -> InputError:
    near = did_you_mean(verb, _VERBS) if verb else None
    return InputError(
        f"`{program} {verb}` is not understood" if verb else f"{program} is given no command",
        cause=f"did you mean `{program} {near}`?" if near else "envmedic foresees what installs and uninstalls",
        hint=f"Ask about `{program} install` or `{program} uninstall`",
    )
