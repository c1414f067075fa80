"""Commands of projects: of uv, poetry, PDM and pixi, which follow manifest and lock. Pure.

https://docs.astral.sh/uv/reference/cli/, https://python-poetry.org/docs/cli/, https://pdm-project.org/latest/reference/cli/,
https://pixi.sh/latest/reference/cli/.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from envmedic.errors import InputError
from envmedic.model.answers.guard import PackageTool, ProjectCommand
from envmedic.planner.guard.command_options import CannotTell, parse_options, words
from envmedic.planner.guard.command_tools import UvHelp
from envmedic.planner.guard.typed_lines import did_you_mean

TOOLS: tuple[PackageTool, ...] = ("poetry", "pdm", "pixi")
"""uv is not among them: its `pip` commands are read elsewhere."""
VERBS: Mapping[PackageTool, tuple[str, ...]] = {
    "uv": ("add", "remove", "sync", "lock", "run"),
    "poetry": ("add", "remove", "install", "sync", "update", "lock"),
    "pdm": ("add", "remove", "install", "sync", "update", "lock"),
    "pixi": ("add", "remove", "install", "update", "upgrade", "lock", "run", "shell"),
}
_ELSEWHERE = ("--project", "--directory", "--script", "--global", "-p", "-C", "-P", "--venv", "--manifest-path")
"""Options with which another project or environment is meant."""
_WITHOUT_EFFECT = frozenset(
    {"--quiet", "--verbose", "--dry-run", "--no-progress", "-q", "-v", "-n", "--no-interaction"}
)


def read(tool: PackageTool, arguments: Sequence[str], uv_help: UvHelp | None = None) -> ProjectCommand:
    """Parse the words after a tool of projects. Raises CannotTell, and InputError for a command that it does not have."""
    verb = next((item for item in arguments if not item.startswith("-")), "")
    if verb not in VERBS[tool]:
        near = did_you_mean(verb, VERBS[tool]) if verb else None
        listed = ", ".join(f"`{tool} {item}`" for item in VERBS[tool])
        raise InputError(
            f"`{tool} {verb}` is not understood" if verb else f"{tool} is given no command",
            cause=f"did you mean `{tool} {near}`?" if near else "envmedic foresees what installs, updates and removes",
            hint=f"Ask about one of {listed}",
        )
    given = list(arguments)
    given.remove(verb)
    elsewhere = next((item for item in given if item.partition("=")[0] in _ELSEWHERE), None)
    if verb == "run" and uv_help is not None:
        given = _of_run(given, uv_help)
    elif elsewhere is not None:
        raise CannotTell(
            f"{elsewhere} names another project or environment", hint="Ask about the command in that directory"
        )
    return ProjectCommand(tool=tool, verb=verb, words=tuple(item for item in given if item not in _WITHOUT_EFFECT))


def _of_run(given: Sequence[str], uv_help: UvHelp) -> list[str]:
    """The options of ``uv run`` that bear on what is synchronised; what stands behind them is another program's."""
    known, found = parse_options(uv_help("run")), []
    for item in words(given, known, "uv run"):
        if not item.name:
            behind = given[given.index(item.value) :]
            if behind[0] == "pip" or behind[1:3] == ["-m", "pip"]:
                raise CannotTell("uv run starts pip here", hint="Ask about that command of pip by itself")
            break
        if item.name in {"--project", "--directory", "--script", "--isolated", "--no-project"}:
            raise CannotTell(f"what uv run does with {item.name} is not about this environment")
        if item.name in {"--extra", "--all-extras", "--no-extra", "--group", "--no-group", "--only-group", "--all-groups",
                         "--no-dev", "--dev", "--no-default-groups", "--package", "--all-packages", "--frozen", "--locked",
                         "--exact", "--no-sync"}:  # fmt: skip
            found.append(f"{item.name}={item.value}" if item.value else item.name)
    return found
