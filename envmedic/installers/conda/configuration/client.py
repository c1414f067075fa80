"""The user's own conda: its path, and its configuration by ``conda config``."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from envmedic.errors import InstallerError
from envmedic.owner import owner
from envmedic.proc import ask

_TIMEOUT_S = 60.0
_KEYS = ("channels", "default_channels", "channel_alias", "custom_channels", "custom_multichannels", "channel_priority",
         "pinned_packages", "offline", "ssl_verify", "proxy_servers", "pkgs_dirs", "allowlist_channels")  # fmt: skip


def find(prefix: Path, environ: Mapping[str, str] = os.environ) -> Path | None:
    """Conda for the environment at `prefix`: from CONDA_EXE, the installation above the environment, or PATH.

    mamba and micromamba also set CONDA_EXE; they do not count.
    """
    return next((path for path in _places(prefix, environ) if path.name == "conda" and os.access(path, os.X_OK)), None)


def root_of(client: Path | None, prefix: Path) -> Path | None:
    """Root of the conda installation of `client`, or else the one above the environment."""
    if client is not None and (client.parent.parent / "conda-meta").is_dir():
        return client.parent.parent
    above = prefix.parent.parent
    return above if prefix.parent.name == "envs" and (above / "conda-meta").is_dir() else None


def _places(prefix: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    if environ.get("CONDA_EXE"):
        yield Path(environ["CONDA_EXE"])
    if prefix.parent.name == "envs":
        yield prefix.parent.parent / "bin" / "conda"
        yield prefix.parent.parent / "condabin" / "conda"
    # A base environment holds conda itself.
    yield prefix / "bin" / "conda"
    found = shutil.which("conda", path=environ.get("PATH"))
    if found:
        yield Path(found)


def settings(client: Path, prefix: Path) -> dict[str, Any]:
    """Configuration of `client` for `prefix`: the relevant keys of ``conda config --show --json``.

    Raises InstallerError if conda fails.
    """
    argv = (str(client), "config", "--show", "--json")
    try:
        # conda reads the .condarc of the active environment, so this one must look active.
        env = {"CONDA_PREFIX": str(prefix), "CONDA_JSON": None}
        result = ask(argv, timeout_s=_TIMEOUT_S, env=env, user=owner(client))
    except OSError as error:
        raise InstallerError(f"{client} cannot be run", cause=str(error), hint=_HINT) from error
    if result.timed_out or result.returncode != 0:
        how = "gave no answer" if result.timed_out else f"ended with exit status {result.returncode}"
        last = next((line for line in reversed(result.stderr.splitlines()) if line.strip()), None)
        raise InstallerError(f"`conda config --show` {how}", cause=last, hint=_HINT)
    try:
        found: dict[str, Any] = json.loads(result.stdout)
    except ValueError as error:
        raise InstallerError(f"`{client} config --show --json` gave no JSON", cause=str(error), hint=_HINT) from error
    # null is a key without a value, which the files express by absence.
    return {key: found[key] for key in _KEYS if found.get(key) is not None}


_HINT = "Repair that conda, or unset CONDA_EXE and take it off PATH: its configuration files are read then"
