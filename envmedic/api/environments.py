"""The environments of this machine."""

from __future__ import annotations

import os
from pathlib import Path

from envmedic.model.answers.environments import Environments, FoundEnvironment
from envmedic.probe.prefix import environments


def list_environments() -> Environments:
    """Every environment that conda, its relatives and virtual environments make known from the working directory."""
    return environments.find(os.environ, Path(_working_directory()))


def describe_environment(prefix: Path) -> FoundEnvironment:
    """A first look at the environment at `prefix`, which is one."""
    return environments.look(os.environ, prefix)


def _working_directory() -> str:
    """With the user's own spelling of links; the root where the directory was deleted under the shell."""
    stated = os.environ.get("PWD", "")
    try:
        here = os.getcwd()  # a text
        return stated if stated and os.path.samefile(stated, here) else here
    except OSError:
        return "/"
