"""Use case ``envs``: the environments of this machine."""

from __future__ import annotations

import os
from pathlib import Path

from envmedic.model.answers.environments import Environments, FoundEnvironment
from envmedic.probe.prefix import environments


def list_environments() -> Environments:
    """Return the environments that conda and similar tools register, and those near the working directory."""
    return environments.find(os.environ, Path(_working_directory()))


def describe_environment(prefix: Path) -> FoundEnvironment:
    """Return a short description of the environment at `prefix`."""
    return environments.look(os.environ, prefix)


def _working_directory() -> str:
    """Return the working directory; the root if it was deleted."""
    # PWD has the links as the user typed them, and getcwd does not; PWD counts only if it is the same directory
    stated = os.environ.get("PWD", "")
    try:
        here = os.getcwd()
        return stated if stated and os.path.samefile(stated, here) else here
    except OSError:
        return "/"
