"""The options of conda, mamba and micromamba that decide what is installed, and those that do not. Pure.

https://docs.conda.io/projects/conda/en/stable/commands/install.html.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from envmedic.errors import InputError
from envmedic.model.answers.guard import CondaCommand
from envmedic.planner.guard.options_table import Table, Word, table, words

TOOLS = frozenset({"conda", "mamba", "micromamba"})
_Verb = Literal["install", "update", "remove"]
_VERBS: dict[str, _Verb] = {
    "install": "install",
    "update": "update",
    "upgrade": "update",
    "remove": "remove",
    "uninstall": "remove",
}
_GENERAL = table(
    ignored=(
        "-y --yes -q --quiet -v --verbose --json --debug --trace -d --dry-run --console= --solver= --insecure -k "
        "--ssl-verify= --no-rc --no-env -C --use-index-cache --show-channel-urls --no-show-channel-urls --copy "
        "--no-banner --log-level= --experimental --offline-cache"
    ),
    name="-n= --name=",
    prefix="-p= --prefix=",
    channel="-c= --channel=",
    override="-O --override-channels",
    offline="--offline",
)
_CHANGE: Table = {
    **_GENERAL,
    **table(
        ignored="--satisfied-skip-solve -S --freeze-installed --no-update-deps --update-specs -m --mkdir --download-only",
        refused=(
            "--file= -f= --revision= --no-deps --only-deps --no-pin --force-reinstall --update-deps --clobber "
            "--strict-channel-priority --no-channel-priority --channel-priority= --use-local --subdir= --platform= "
            "--repodata-fn= --override-frozen"
        ),
        everything="--all --update-all -a",
    ),
}
_REMOVE: Table = {
    **_GENERAL,
    **table(
        refused="--all --features --keep-env --no-pin --subdir= --override-frozen",
        force="--force --force-remove --no-prune-deps",
    ),
}


def read_conda(tool: str, arguments: Sequence[str]) -> CondaCommand:
    """What follows ``conda``, ``mamba`` or ``micromamba``. Raises InputError for what is not understood."""
    text = arguments[0] if arguments else ""
    verb = _VERBS.get(text)
    if verb is None:
        raise InputError(
            f"`{tool} {text}` is not understood" if text else f"{tool} is given no command",
            cause="envmedic foresees what installs, updates and removes",
            hint=f"Ask about `{tool} install`, `{tool} update` or `{tool} remove`",
        )
    found = list(words(arguments[1:], _REMOVE if verb == "remove" else _CHANGE, f"{tool} {text}"))
    command = CondaCommand(
        tool="conda" if tool == "conda" else "mamba" if tool == "mamba" else "micromamba",
        verb=verb,
        specs=_values(found, None),
        channels=_values(found, "channel"),
        override_channels=_has(found, "override"),
        everything=_has(found, "everything"),
        force=_has(found, "force"),
        offline=_has(found, "offline"),
        name=next(iter(_values(found, "name")), None),
        prefix=next(iter(_values(found, "prefix")), None),
    )
    if not command.specs and not command.everything:
        raise InputError(f"The command says nothing to {verb}", hint="Name a package, as conda would want it")
    return command


def _values(found: Sequence[Word], meaning: str | None) -> tuple[str, ...]:
    return tuple(item.value for item in found if item.meaning == meaning)


def _has(found: Sequence[Word], meaning: str) -> bool:
    return any(item.meaning == meaning for item in found)
