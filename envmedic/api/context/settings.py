"""Requests of the front ends: settings, the named environment, and the repair."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec

from envmedic.model.events import EventStream
from envmedic.model.facts import Environment, Facts
from envmedic.model.playbook import Policy
from envmedic.model.registries.installers import DEFAULT, DEFAULT_OF_CONDA

if TYPE_CHECKING:
    from envmedic.model.conda import CondaExecutor
    from envmedic.model.registries.installers import WheelInstaller

TORCH_INDEX = "https://download.pytorch.org/whl/{variant}"
"""Template of the PyTorch wheel index; https://pytorch.org/get-started/previous-versions/."""


class Observer(Protocol):
    """Observes environments instead of this process."""

    def observe(self, settings: Settings, prefix: Path) -> Facts:
        """Return the facts of the host and the environment at `prefix`. Raises as `api.observation.observe`."""

    def observe_clone(self, settings: Settings, tree: Path, prefix: Path) -> Environment:
        """Return what `api.observation.observe_clone` does. Raises as it does."""


class Settings(msgspec.Struct, frozen=True):
    """How a use case runs."""

    stream: EventStream
    host_file: str | None = None
    """File with facts that replace this host's."""
    find_links: tuple[str, ...] = ()
    torch_index: str = TORCH_INDEX
    offline: bool = False
    installer: WheelInstaller = DEFAULT
    """The installer of wheels."""
    conda_installer: CondaExecutor = DEFAULT_OF_CONDA
    """The program that changes conda packages."""
    timeout_s: float | None = None
    """Limit in seconds for one check or step; None takes the default of each."""
    playbook_files: tuple[str, ...] = ()
    """Playbooks besides the shipped ones and the user's."""
    pin: bool = False
    """Write constraints that keep the versions of a repair."""
    lifts_pins: bool = False
    """Whether a plan may walk around pins of the user that no plan keeps."""
    deep: bool = False
    """Read and hash every installed file; without it, their existence and size are compared."""
    unnamed: bool = False
    """Nobody named or activated the environment: it is that of the project around the working directory, and none of its
    programs is started."""
    observer: Observer | None = None
    """Observes environments for front ends that must hear keys meanwhile; None observes in this process."""


class NamedTarget(msgspec.Struct, frozen=True):
    """The environment as the user named it; all None means the active one."""

    name: str | None = None
    prefix: str | None = None
    python: str | None = None


class RepairRequest(msgspec.Struct, frozen=True):
    """The repair that the user wants; without any field, that of confirmed faults."""

    playbook: str | None = None
    """Id or file of a playbook to follow."""
    log: str | None = None
    """File with the error text, or ``-``."""
    command: tuple[str, ...] = ()
    """The failing command, whose outcome is a check."""
    last: bool = False
    """Whether the last failure of a program in the environment is repaired, and that program decides."""
    pass_after_s: float | None = None
    """Seconds without the reported error after which that program has passed; None takes the default."""
    policy: Policy | None = None
    """The policy of a move of the torch family; None repairs a fault."""
    way: str | None = None
    """Title of the way to take first, from the alternatives of a plan; None takes the best."""
    keep_partial: bool = False
    """Whether the repair of something else that facts show is wanted too, where the reported fault stays."""
