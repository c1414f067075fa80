"""Dry run of a conda command by the user's conda, without writing to the environment.

conda touches ``conda-meta/history`` even in a dry run. So it gets a stand-in: a directory with copies of the files in
``conda-meta``, and nothing that could be run.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from envmedic import proc, safe_io
from envmedic.conda_meta import history, pins_and_marks
from envmedic.errors import InstallerError, NetworkError
from envmedic.installers.conda.configuration import client
from envmedic.installers.conda.configuration.credentials import without_credentials
from envmedic.installers.resolution.dry_run import path_outside
from envmedic.model.answers.guard import CondaCommand
from envmedic.model.conda import CondaArtifact, CondaChange, CondaEnvironment, CondaReference
from envmedic.owner import owner

TIMEOUT_S = 900.0
_LARGEST = 64 * 2**20
_REFUSALS = frozenset({
    "DisallowedPackageError", "EnvironmentIsFrozenError", "InvalidMatchSpec", "InvalidSpec", "InvalidVersionSpec",
    "LibMambaUnsatisfiableError", "NoChannelsConfiguredError", "NoPackagesFoundError", "PackageNotInstalledError",
    "PackagesNotFoundError", "PackagesNotFoundInChannelsError", "RemoveError", "ResolvePackageNotFound",
    "SpecsConfigurationConflictError", "UnsatisfiableError",
})  # fmt: skip
"""conda's exceptions that mean a refusal: the real command would end with them too, and change nothing."""
_NETWORK = frozenset({
    "ChannelNotAllowed", "CondaHTTPError", "CondaSSLError", "OfflineError", "ProxyError", "UnavailableInvalidChannel",
})  # fmt: skip
_OF_SHELL = ("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "LD_LIBRARY_PATH", "LD_PRELOAD", "LD_AUDIT", "CONDA_JSON")
"""Variables that would make conda's Python load modules and libraries of an activated environment."""


@dataclass(frozen=True)
class Answer:
    """Result of a dry run."""

    change: CondaChange = field(default_factory=CondaChange)
    refused: str | None = None
    """Reason of the error in which the command would end."""
    unknown: str | None = None
    """Reason why only a real run could tell."""


def foresee(
    command: CondaCommand, conda: CondaEnvironment, prefix: Path, *, offline: bool, timeout_s: float | None
) -> Answer:
    """Run conda's dry run. `prefix` is the environment's real path. Raises NetworkError and InstallerError."""
    program = client.find(prefix)
    if program is None:
        return Answer(unknown=f"no conda was found, whose dry run tells what {command.tool} would do")
    if program.resolve().is_relative_to(os.path.realpath(prefix)):
        return Answer(unknown=f"{program} is itself in the environment, of which nothing is run to tell")
    if owner(program) is not None:
        return Answer(unknown=f"{program} belongs to another user, whose programs root does not run")
    with tempfile.TemporaryDirectory(prefix="envmedic-guard-") as name:
        stand_in, said = Path(name) / "env", Path(name) / "said.json"
        said.touch()
        _copy(prefix / "conda-meta", stand_in / "conda-meta")
        # By a shell into a file: `proc` keeps only the end of long output, and the document must be whole.
        arguments = _arguments(command, stand_in, offline=offline)
        argv = ["/bin/sh", "-c", 'exec "$@" >"$0"', str(said), str(program), *arguments]
        path = path_outside(os.environ.get("PATH", ""), prefix)
        env = {**dict.fromkeys(_OF_SHELL), "PYTHONNOUSERSITE": "1", "PATH": path}
        result = proc.run(argv, env=env, timeout_s=timeout_s or TIMEOUT_S)
        try:
            document = json.loads(safe_io.read(said, _LARGEST) or b"")
        except (OSError, ValueError) as error:
            last = next((line for line in reversed(result.stderr.splitlines()) if line.strip()), str(error))
            how = "gave no answer in time" if result.timed_out else "gave no JSON"
            raise InstallerError(
                f"`{program} {command.verb} --dry-run --json` {how}", cause=last, hint="Try that conda by itself"
            ) from error
    return _answer(document, conda)


def _arguments(command: CondaCommand, prefix: Path, *, offline: bool) -> Iterator[str]:
    yield from (command.verb, "--dry-run", "--json", "--yes", f"--prefix={prefix}", *command.options)
    yield from (f"--channel={channel}" for channel in command.channels)
    if command.override_channels:
        yield "--override-channels"
    if offline:
        yield "--offline"
    yield "--"
    yield from command.specs


def _copy(source: Path, target: Path) -> None:
    """Copy records, history, pins and marks: all that a solver reads of an environment."""
    target.mkdir(parents=True)
    marked = {Path(path).name for path in (history.PATH, pins_and_marks.PINNED, pins_and_marks.FROZEN)}
    for entry in os.scandir(source):
        if entry.is_file(follow_symlinks=False) and (entry.name.endswith(".json") or entry.name in marked):
            shutil.copyfile(entry.path, target / entry.name)


def _answer(document: dict[str, Any], conda: CondaEnvironment) -> Answer:
    # The name, not the exit status: conda exits with 1 for a refusal and for a crash alike.
    error = document.get("exception_name")
    if error is None:
        actions = document.get("actions") or {}
        return Answer(
            CondaChange(
                remove=tuple(_gone(item, conda) for item in actions.get("UNLINK", ())),
                install=tuple(map(_come, actions.get("LINK", ()))),
            )
        )
    cause = without_credentials(str(document.get("message") or document.get("error") or error)).strip()
    if error in _REFUSALS:
        return Answer(refused=" ".join(cause.split()))
    if error in _NETWORK:
        raise NetworkError("conda cannot read a channel", cause=cause, hint="Check network, proxy and channels")
    raise InstallerError(f"conda's dry run ended in {error}", cause=cause, hint="Try the command with --dry-run")


def _gone(item: dict[str, Any], conda: CondaEnvironment) -> CondaReference:
    old = conda.package(item["name"])
    return CondaReference(
        name=item["name"],
        version=item["version"],
        build=item["build_string"],
        record=old.record if old is not None else "",
        distributions=old.distributions if old is not None else (),
    )


def _come(item: dict[str, Any]) -> CondaArtifact:
    return CondaArtifact(
        name=item["name"],
        version=item["version"],
        build=item["build_string"],
        channel=without_credentials(str(item.get("base_url") or item.get("channel") or "")),
        subdir=str(item.get("platform") or ""),
        # conda names no file here; nothing is fetched by this answer, so that the extension does not matter.
        filename=f"{item['dist_name']}.conda",
        url="",
    )
