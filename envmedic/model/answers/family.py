"""Queries to the compatibility core, and its answers."""

from __future__ import annotations

from typing import Literal

from envmedic.model.base import Model
from envmedic.model.playbook import Policy

Member = Literal["torch", "torchvision", "torchaudio", "triton"]


class FamilyQuery(Model, frozen=True, kw_only=True):
    """Conditions on a coherent set."""

    python: str
    """Interpreter version such as ``3.11``."""
    free_threaded: bool = False
    system: str = "linux"
    machine: str = "x86_64"
    # None is no failure: a machine without a driver takes CPU builds, unless a GPU is required.
    driver: str | None = None
    """Driver version; None: no driver (CPU) or unknown, see `gpu_required`."""
    capabilities: tuple[str, ...] = ()
    """Compute capability of every visible GPU."""
    # a mutable default is safe: msgspec makes a new dict for each value
    installed: dict[str, str] = {}
    """Installed member → full version with local label."""
    variant: str | None = None
    """CUDA variant of the installed torch, such as ``cu124`` or ``cpu``."""
    members: tuple[Member, ...] = ("torch", "torchvision")
    """Members that the environment needs: those installed, and those a playbook names."""
    policies: tuple[Policy, ...] = ("keep-torch", "keep-cuda-variant", "newest")
    gpu_required: bool = False
    """Whether the set must run on the GPUs: no CPU build, and an unknown driver is no answer."""
    unknown_capabilities: int = 0
    """Visible GPUs whose compute capability nothing could tell."""
    glibc: str | None = None
    """Version of the host's glibc; None: not checked."""
    sass: tuple[str, ...] = ()
    """Capabilities with machine code in the installed torch, as read from its library."""
    ptx: tuple[str, ...] = ()
    """Capabilities with PTX in the installed torch."""
    wanted: dict[str, str] = {}
    """Member → versions that are asked for, such as ``>=2.7``."""
    forward: bool = False
    """Whether nothing older than what is installed is an answer, and the newest torch is the best one."""
    ask_index: bool = False
    """Whether builds count whose publication the tables do not know: the user's index is asked for them later."""
    requires_torch: dict[str, str] = {}
    """Installed companion → its own requirement on torch, such as ``torch==2.5.1``."""


# Public versions, since the same release has another label on each index; the variant is beside them.
class FamilySet(Model, frozen=True, kw_only=True):
    """A coherent set. Versions are public ones (no local label)."""

    variant: str
    """``cu124`` or ``cpu``."""
    versions: dict[str, str]
    policy: Policy
    """The policy under which it was proposed."""
    reasons: tuple[str, ...] = ()
    """Rules that it was checked against and the facts used, with sources."""
    default_index: bool = False
    """Whether the default index carries this torch in this variant."""
    unverified: bool = False
    """Whether the tables do not know that this torch is published in this variant."""


# Kept with its rule and source: a plan has to say why a newer release is not proposed.
class RejectedSet(Model, frozen=True, kw_only=True):
    """A set that was considered and breaks a rule."""

    title: str
    rule: str
    """Stable id of the rule, such as ``driver-minimum``."""
    reason: str
    source: str = ""


class FamilyAnswer(Model, frozen=True, kw_only=True):
    """Coherent sets, best first, and what was rejected."""

    sets: tuple[FamilySet, ...]
    rejected: tuple[RejectedSet, ...]


class FamilyProblem(Model, frozen=True, kw_only=True):
    """An incoherence in what is installed."""

    rule: str
    member: Member
    summary: str
    source: str = ""


class Offered(Model, frozen=True, kw_only=True):
    """One file of a release on an index."""

    filename: str
    url: str
    """Without credentials, query and fragment."""
    sha256: str | None = None
    size_bytes: int | None = None
    requires_python: str | None = None
    uploaded: str | None = None
    """Day of the upload (ISO 8601, UTC); None where the index does not tell."""
    yanked: bool = False
    """Whether its authors withdrew it."""

    @property
    def is_wheel(self) -> bool:
        """Whether it is a wheel and not a source archive."""
        return self.filename.endswith(".whl")


class WheelContents(Model, frozen=True, kw_only=True, omit_defaults=True):
    """What a wheel of the torch family says of itself: its metadata, and some of its files."""

    filename: str
    requires: tuple[str, ...] = ()
    requires_python: str | None = None
    version: str | None = None
    """By its ``version.py``, which has a local label where the file name has none; None without that file."""
    cuda: str | None = None
    """CUDA version by the same file; None for a build without CUDA, and for companions."""
    builds: dict[str, dict[str, tuple[str, ...]]] = {}
    """CUDA version → machine → compute capabilities of the release's builds, which torch keeps in ``torch/cuda`` to
    tell the users of one build about the others. Since torch 2.10; empty for a wheel without the list."""
    sass: tuple[str, ...] = ()
    """Compute capabilities that the wheel's library says it was compiled for."""
    ptx: tuple[str, ...] = ()
    numpy_abi: int | None = None
    """1 for a library that knows NumPy 1 only, 2 for both; None where it was not read."""
