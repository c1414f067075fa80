"""What a front end says once: how to run, on which environment, and what to repair."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from envmedic.model.events import EventStream
from envmedic.model.installers import DEFAULT, DEFAULT_OF_CONDA
from envmedic.model.playbook import Policy

if TYPE_CHECKING:
    from envmedic.ahead import Ahead
    from envmedic.model.conda import CondaExecutor
    from envmedic.model.installers import WheelInstaller

TORCH_INDEX = "https://download.pytorch.org/whl/{variant}"
"""Template of the PyTorch wheel index; https://pytorch.org/get-started/previous-versions/."""


class Settings(msgspec.Struct, frozen=True):
    """How a use case runs."""

    stream: EventStream
    host_file: str | None = None
    """Facts to use instead of this host's."""
    find_links: tuple[str, ...] = ()
    torch_index: str = TORCH_INDEX
    offline: bool = False
    installer: WheelInstaller = DEFAULT
    """What installs wheels."""
    conda_installer: CondaExecutor = DEFAULT_OF_CONDA
    """What carries out changes of conda packages."""
    timeout_s: float | None = None
    """Limit for one check or step; None takes each one's own."""
    playbook_files: tuple[str, ...] = ()
    """Playbooks besides the shipped ones and the user's."""
    pin: bool = False
    """Write constraints that keep what a repair puts in place."""
    deep: bool = False
    """Read and hash every installed file; without it, their existence and size are compared."""
    apart: bool = False
    """Observe environments in processes of their own: a front end in this one hears keys meanwhile."""
    ahead: Ahead | None = None
    """What was begun of an observation before the rest of envmedic was loaded."""


class NamedTarget(msgspec.Struct, frozen=True):
    """The environment as the user named it; all None means the active one."""

    name: str | None = None
    prefix: str | None = None
    python: str | None = None


class RepairRequest(msgspec.Struct, frozen=True):
    """What the user wants repaired; all empty means what the facts confirm."""

    playbook: str | None = None
    """Id or file of a playbook to follow."""
    log: str | None = None
    """File with the error text, or ``-``."""
    command: tuple[str, ...] = ()
    """The failing command, whose outcome is a check."""
    policy: Policy | None = None
    """What to hold on to while the torch family is moved on; None repairs a fault."""
    way: str | None = None
    """Title of the way to take first, as plans name it among those that were not chosen; None takes the best."""
