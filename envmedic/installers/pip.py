"""The environment's own pip as the executor. Wheels are chosen and fetched as with uv."""

from __future__ import annotations

from pathlib import Path

from envmedic.errors import InstallerError
from envmedic.installers import removal
from envmedic.installers.uv import Argv, UvInstaller
from envmedic.model.plan import Install, Purge


class PipInstaller(UvInstaller):
    """Implements `ports.Installer`; steps run ``python -m pip`` of the environment itself."""

    def commands(self, step: Purge | Install, python: str) -> tuple[Argv, ...]:
        """Argv of each command that carries `step` out. Raises `InstallerError` when the environment has no pip."""
        require_pip(python)
        if isinstance(step, Purge):
            # One command per metadata directory: pip removes one of several distributions with the same name per run.
            prefix = Path(python).parent.parent
            found = [item.name for item in step.distributions if removal.removable(item, prefix)]
            return tuple((*_base(python), "uninstall", "--yes", name) for name in found)
        return (_install(step, python),) if step.artifacts else ()

    def check_command(self, python: str) -> Argv:
        """Argv that exits 0 when every installed distribution's requirements are met, and lists those that are not."""
        require_pip(python)
        return (*_base(python, "-B"), "check")  # on the live environment too: -I is deaf to PYTHONDONTWRITEBYTECODE


def _install(step: Install, python: str) -> Argv:
    # By version and directory, not by path: for a path pip writes direct_url.json (PEP 610), and `pip freeze` then
    # prints that path. Each directory of the cache holds one wheel, so that pip has no choice.
    folders = dict.fromkeys(str(Path(item.local_path).parent) for item in step.artifacts)
    return (
        *(*_base(python), "install", "--no-deps", "--no-index", "--no-cache-dir", "--only-binary=:all:"),
        *("--force-reinstall", "--no-compile", "--no-warn-script-location"),
        *(f"--find-links={folder}" for folder in folders),
        *(f"{item.name}=={item.version}" for item in step.artifacts),
    )


def _base(python: str, *options: str) -> Argv:
    """Pip without the user's configuration, variables and site."""
    # --isolated covers variables and the user's file, but not the global and site files: PIP_CONFIG_FILE=/dev/null
    # makes pip read none at all.
    no_files = ("/usr/bin/env", "PIP_CONFIG_FILE=/dev/null")
    return (*no_files, python, "-I", *options, "-m", "pip", "--isolated", "--no-input", "--disable-pip-version-check")


def require_pip(python: str) -> None:
    """Raise `InstallerError` unless the environment of `python` has pip."""
    prefix = Path(python).parent.parent
    # A look at the disk: to ask pip itself would start the environment's Python once more.
    if not any(prefix.glob("lib/python3*/site-packages/pip/__main__.py")):
        raise InstallerError(
            f"{prefix} has no pip",
            cause="it was made without it",
            hint="Leave --installer out: uv installs from outside",
        )
