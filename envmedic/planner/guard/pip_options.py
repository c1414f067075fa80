"""The options of pip 26 and uv 0.13 that decide what is installed, and those that do not. Pure.

https://pip.pypa.io/en/stable/cli/pip_install/ and https://docs.astral.sh/uv/reference/cli/#uv-pip-install.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from packaging.requirements import InvalidRequirement

from envmedic import limits
from envmedic.errors import InputError
from envmedic.model.answers.guard import PipCommand
from envmedic.planner.guard.options_table import IGNORED, Table, Word, table, words

_PIP_GENERAL = table(
    ignored=(
        "-v --verbose -q --quiet --debug --no-input --no-color --disable-pip-version-check --no-cache-dir --no-clean "
        "--no-python-version-warning --require-virtualenv --log= --keyring-provider= --proxy= --retries= --timeout= "
        "--exists-action= --cert= --client-cert= --cache-dir= --use-feature= --use-deprecated= --resume-retries="
    ),
    isolated="--isolated",
    python="--python=",
    trusted="--trusted-host=",
)
_PIP_INSTALL: Table = {
    **_PIP_GENERAL,
    **table(
        ignored=(
            "--dry-run --compile --no-compile --no-build-isolation --use-pep517 --no-use-pep517 --break-system-packages "
            "--check-build-dependencies --no-warn-script-location --no-warn-conflicts --src= -C= --config-settings= "
            "--config-setting= --global-option= --progress-bar= --root-user-action= --report= --build-constraint="
        ),
        refused=(
            "-t= --target= --user --root= --prefix= --platform= --python-version= --implementation= --abi= "
            "--ignore-requires-python"
        ),
        file="-r= --requirement=",
        constraint="-c= --constraint=",
        editable="-e= --editable=",
        upgrade="-U --upgrade",
        strategy="--upgrade-strategy=",
        pre="--pre",
        flag="--no-deps --require-hashes",
        no_deps="--no-dependencies",
        reinstall="--force-reinstall -I --ignore-installed",
        index="-i= --index-url= --pypi-url=",
        extra="--extra-index-url=",
        no_index="--no-index",
        links="-f= --find-links=",
        option="--no-binary= --group=",
        only_binary="--only-binary=",
        wheels="--prefer-binary",
    ),
}
_PIP_UNINSTALL: Table = {
    **_PIP_GENERAL,
    **table(ignored="-y --yes --break-system-packages --root-user-action=", file="-r= --requirement="),
}
_UV_GENERAL = table(
    ignored=(
        "-q --quiet -v --verbose -n --no-cache --no-progress --system-certs --native-tls --managed-python "
        "--no-managed-python --no-python-downloads --cache-dir= --color= --cert="
    ),
    flag="--offline --no-config",
    option="--allow-insecure-host= --config-file=",
    refused="--directory= --project=",
)
_UV_CHANGE: Table = {
    **_UV_GENERAL,
    **table(
        ignored=(
            "--system --break-system-packages --no-break-system-packages --strict --dry-run --compile-bytecode "
            "--no-build-isolation --link-mode= -C= --config-setting= --config-settings-package= "
            "--no-build-isolation-package= --output-format= --allow-empty-requirements"
        ),
        refused="-t= --target= --prefix= --user --python-version= --python-platform=",
        python="-p= --python=",
        constraint="-c= --constraint= --constraints=",
        flag=(
            "--require-hashes --no-verify-hashes --no-index --reinstall --force-reinstall --refresh --no-sources "
            "--all-extras"
        ),
        option=(
            "--index= --default-index= -i= --index-url= --extra-index-url= -f= --find-links= --index-strategy= "
            "--keyring-provider= -b= --build-constraint= --build-constraints= --exclude-newer= --exclude-newer-package= "
            "--no-sources-package= --reinstall-package= --refresh-package= --no-binary= --torch-backend= --group= --extra="
        ),
        wheels="--no-build",
        only_binary="--only-binary=",
    ),
}
_UV_INSTALL: Table = {
    **_UV_CHANGE,
    **table(
        file="-r= --requirement= --requirements=",
        editable="-e= --editable=",
        upgrade="-U --upgrade",
        pre="--pre",
        flag="--no-deps --exact --no-editable",
        option=(
            "--override= --overrides= --exclude= --excludes= -P= --upgrade-package= --upgrade-group= --resolution= "
            "--prerelease= --prerelease-package= --fork-strategy= --no-editable-package="
        ),
    ),
}
_UV_UNINSTALL: Table = {
    **_UV_GENERAL,
    **table(
        ignored="--system --break-system-packages --no-break-system-packages --dry-run --keyring-provider=",
        refused="-t= --target= --prefix=",
        python="-p= --python=",
        file="-r= --requirement= --requirements=",
    ),
}
_SYNCED = "sync"


def read_pip(arguments: Sequence[str]) -> PipCommand:
    """What follows ``pip``. Raises InputError for what is not understood."""
    before, verb, after = _verb(arguments, _PIP_GENERAL, "pip")
    if verb == "install":
        return _made("pip", "install", [*before, *words(after, _PIP_INSTALL, "pip install")])
    if verb == "uninstall":
        return _made("pip", "uninstall", [*before, *words(after, _PIP_UNINSTALL, "pip uninstall")])
    raise _other_verb("pip", verb)


def read_uv(arguments: Sequence[str]) -> PipCommand:
    """What follows ``uv``. Raises InputError for what is not understood."""
    first, noun, rest = _verb(arguments, _UV_GENERAL, "uv")
    if noun != "pip":
        raise InputError(
            f"`uv {noun}` is not understood" if noun else "uv is given no command",
            cause="it follows a project's own lock, which may change anything that is installed" if noun else None,
            hint="Ask about the `uv pip install` that it comes to, or of a lock with `envmedic verify --lock FILE`",
        )
    second, verb, after = _verb(rest, _UV_GENERAL, "uv pip")
    if verb == "install":
        found = words(after, _UV_INSTALL, "uv pip install")
        return _made("uv", "install", [*first, *second, *found])
    if verb == "uninstall":
        found = words(after, _UV_UNINSTALL, "uv pip uninstall")
        return _made("uv", "uninstall", [*first, *second, *found])
    if verb == _SYNCED:
        found = words(after, _UV_CHANGE, "uv pip sync")
        return _made("uv", "sync", [*first, *second, *found])
    raise _other_verb("uv pip", verb)


def _verb(arguments: Sequence[str], general: Table, program: str) -> tuple[list[Word], str, list[str]]:
    """General options, the verb, and what follows it."""
    before: list[Word] = []
    rest = list(arguments)
    while rest and rest[0].startswith("-"):
        option = general.get(rest[0].partition("=")[0])
        taken = 2 if option is not None and option.value and "=" not in rest[0] else 1
        before += words(rest[:taken], general, program)
        rest = rest[taken:]
    return before, rest[0] if rest else "", rest[1:]


def _other_verb(program: str, verb: str) -> InputError:
    return InputError(
        f"`{program} {verb}` is not understood" if verb else f"{program} is given no command",
        cause="envmedic foresees what installs and uninstalls",
        hint=f"Ask about `{program} install` or `{program} uninstall`",
    )


def _made(
    tool: Literal["pip", "uv"], verb: Literal["install", "uninstall", "sync"], found: Sequence[Word]
) -> PipCommand:
    command = PipCommand(
        tool=tool,
        verb=verb,
        requirements=_values(found, None),
        files=_values(found, "file"),
        editables=_values(found, "editable"),
        constraints=_values(found, "constraint"),
        upgrade=_upgrade(tool, found),
        index_url=next(iter(reversed(_values(found, "index"))), None),
        extra_index_urls=tuple(url for text in _values(found, "extra") for url in text.split()),
        find_links=_values(found, "links"),
        trusted_hosts=_values(found, "trusted"),
        no_index=_has(found, "no_index"),
        only_wheels=_has(found, "wheels") or ":all:" in _values(found, "only_binary"),
        isolated=_has(found, "isolated"),
        options=_options(found),
        python=next(iter(reversed(_values(found, "python"))), None),
    )
    if not (command.requirements or command.files or command.editables or _has_group(found)):
        raise InputError(
            f"The command says nothing to {verb}", hint=f"Name a requirement or a file, as `{tool}` would want it"
        )
    _refuse_bad_names(command)
    return command


def _values(found: Sequence[Word], meaning: str | None) -> tuple[str, ...]:
    return tuple(item.value for item in found if item.meaning == meaning)


def _has(found: Sequence[Word], meaning: str) -> bool:
    return any(item.meaning == meaning for item in found)


def _has_group(found: Sequence[Word]) -> bool:
    return any(item.flag == "--group" for item in found)


def _upgrade(tool: str, found: Sequence[Word]) -> Literal["no", "named", "all"]:
    """What ``-U`` means: pip leaves dependencies alone that do well enough; uv -U does not, nor does pip's eager strategy."""
    if not _has(found, "upgrade"):
        return "no"
    eager = "eager" in _values(found, "strategy")
    return "all" if eager or tool == "uv" else "named"


def _options(found: Sequence[Word]) -> tuple[str, ...]:
    """In uv's words."""
    said: list[str] = []
    for item in found:
        if item.meaning == "option":
            said += [item.flag, item.value]
        elif item.meaning == "flag":
            said.append(item.flag)
        else:
            said += _REWORDED.get(item.meaning or IGNORED, ())
    return tuple(said)


_REWORDED = {"no_deps": ("--no-deps",), "pre": ("--prerelease=allow",), "reinstall": ("--reinstall",)}


def requirement_name(text: str) -> str | None:
    """The name that a requirement, or the file name of a wheel, asks for; None for a path or URL that says none."""
    stem = text.partition("#")[0].rpartition("/")[2]
    if stem.endswith(".whl"):
        return stem.partition("-")[0]
    try:
        return limits.parsed(text).name
    except InvalidRequirement:
        return None


def is_location(text: str) -> bool:
    """Whether a word is a path or URL rather than a requirement by name."""
    return "://" in text or "/" in text or text in {".", ".."} or text.endswith((".whl", ".tar.gz", ".zip"))


def _refuse_bad_names(command: PipCommand) -> None:
    if command.verb == _SYNCED:
        return
    for text in command.requirements:
        path = text.partition("[")[0]  # ./project[extra]
        if requirement_name(text) is None and not is_location(path):
            raise InputError(
                f"{text!r} is not a requirement",
                cause=f"`{command.tool} {command.verb}` could not read it either",
                hint="Write it as pip does: 'flash-attn', 'torch>=2.7', ./path, https://…",
            )
