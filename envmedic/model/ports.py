"""Interfaces between packages, so that siblings never import siblings; `api` connects them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Literal, Protocol

import msgspec

from envmedic.errors import EnvmedicError
from envmedic.model.base import Model
from envmedic.model.checks import Check, Outcome, Phase
from envmedic.model.conda import CondaArtifact, CondaChange, CondaPackage, CondaRequest
from envmedic.model.events import Emit
from envmedic.model.facts import Environment, Host
from envmedic.model.pins import ProjectEdit
from envmedic.model.plan import Artifact, Install, Plan, Purge, Rebuild
from envmedic.model.record import DistributionState, Left, Record
from envmedic.model.registries.modes import AllowName, CloneMode, ExchangeMethod, Layout, StagingMode

OnLine = Callable[[str], None]
MatchesSpec = Callable[[str, CondaPackage], bool]
"""Whether a conda package is what a match spec asks for. Raises ValueError for a spec that cannot be read."""


class CommandResult(Model, frozen=True, kw_only=True):
    """How a command ended."""

    argv: tuple[str, ...]
    returncode: int
    """Exit status; negative signal number when a signal ended it."""
    # The end, not the beginning: compilers and installers print megabytes, and the error comes last.
    stdout: str = ""
    """At most the last 256 KiB."""
    stderr: str = ""
    """At most the last 256 KiB."""
    seconds: float = 0.0
    timed_out: bool = False

    @property
    def signal(self) -> int | None:
        """Number of the signal that ended it, or None."""
        return -self.returncode if self.returncode < 0 else None


class Runner(Protocol):
    """Runs a command where the environment appears at its true path."""

    @property
    def python(self) -> Path:
        """The environment's interpreter as commands must name it."""

    @property
    def tree(self) -> Path:
        """The environment's files as this process sees them: the prefix, or the clone that commands see there."""

    def __call__(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        on_line: OnLine | None = None,
        timeout_s: float | None = None,
    ) -> CommandResult:
        """Run `argv` to its end; `env` adds to and replaces inherited variables."""


class ResolveRequest(Model, frozen=True, kw_only=True):
    """Exact pins to turn into wheels."""

    # PEP 440: `==2.5.1` accepts 2.5.1+cu124 too. The variant decides between the builds, through the index.
    pins: tuple[str, ...]
    """Requirements such as ``torchvision==0.20.1``, without local labels."""
    variant: str | None = None
    """CUDA variant wanted, None where it does not matter."""
    needs_variant_index: bool = False
    """Whether a pin in that variant is not on the default index, so that `torch_index` must be asked."""
    replaceable: tuple[str, ...] = ()
    """Installed distributions, as names or patterns such as ``nvidia-*``, that may change to what the pins require."""
    find_links: tuple[str, ...] = ()
    offline: bool = False
    torch_index: str = "https://download.pytorch.org/whl/{variant}"
    indexes: tuple[str, ...] = ()
    """URLs of indexes that are asked before the user's own."""
    settles: tuple[str, ...] = ()
    """Installed distributions on which no requirement of a new wheel may be unmet, whatever was unmet before."""
    prefers_installed: bool = False
    """Whether what a pin names stays as it is where that fits, instead of being put in place again."""
    stable: bool = False
    """Whether there is no solution where an installed release could only give way to a pre-release."""
    constraints: tuple[str, ...] = ()
    """Limits on the versions of whatever is chosen, such as ``setuptools<81``."""
    without_files: bool = False
    """Whether limits in files of this machine are left aside, since some do not bind; `constraints` has the others."""
    platform: str | None = None
    """uv's name of the platform of another machine, such as ``aarch64-manylinux_2_28``; None for this one."""


class Resolution(Model, frozen=True, kw_only=True):
    """The answer: wheels for the pins and for what they need that is not installed."""

    artifacts: tuple[Artifact, ...]
    indexes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    conda: CondaChange | None = None
    """What changes of the conda packages; None where conda is not asked."""


class Installer(Protocol):
    """uv or pip, or later conda, behind one interface."""

    def resolve(self, request: ResolveRequest, environment: Environment, emit: Emit) -> Resolution:
        """Return exact wheels. Raises NetworkError, NoSolution or InstallerError."""

    def fetch(self, artifacts: Sequence[Artifact], *, offline: bool, emit: Emit) -> None:
        """Download into `Artifact.local_path` and verify. Raises NetworkError or IntegrityError.

        `emit` gets progress several times a second, the same again where nothing comes; what it raises ends the
        download.
        """

    def check_command(self, python: str) -> tuple[str, ...]:
        """Argv that prints each unmet requirement of the environment as a line (``uv pip check``)."""

    def commands(self, step: Purge | Install, python: str) -> tuple[tuple[str, ...], ...]:
        """Argv of each command that carries `step` out with the interpreter `python`."""

    def build_command(self, step: Rebuild, python: str) -> tuple[str, ...]:
        """Argv that builds the wheel of `step` into its workshop, against what the environment of `python` holds."""


class CondaInstaller(Protocol):
    """py-rattler, or the user's own conda, behind one interface."""

    def resolve(self, request: CondaRequest, environment: Environment, host: Host, emit: Emit) -> CondaChange:
        """Return the exact change. Raises NetworkError, NoSolution (with the solver's reasons) or InstallerError."""

    def fetch(self, change: CondaChange, *, offline: bool, emit: Emit) -> None:
        """Bring the packages into the package cache, verified. Raises NetworkError or IntegrityError.

        `emit` gets progress several times a second, the same again where nothing comes; what it raises ends the
        download.
        """

    def is_fetched(self, artifact: CondaArtifact) -> bool:
        """Whether a package file is on this machine already, so that nothing is downloaded."""

    def command(self, change: CondaChange, prefix: str) -> tuple[str, ...]:
        """Argv that carries out `change` in the environment at `prefix`; empty where one command does not."""

    def carry_out(self, change: CondaChange, runner: Runner, emit: Emit, *, timeout_s: float | None = None) -> str:
        """Carry `change` out where `runner` runs commands, and return what there is to say of it.

        Every new file is checked by its hash, and ``conda-meta/history`` gets a revision. Raises InstallerError or
        IntegrityError.
        """


class CheckRunner(Protocol):
    """Runs checks in an environment."""

    def __call__(self, checks: Sequence[Check], runner: Runner, phase: Phase, emit: Emit) -> tuple[Outcome, ...]:
        """Run every check on every device that it needs; emits `CheckFinished` for each outcome."""


class FactsJudge(Protocol):
    """Judges the check ``facts``: what the facts of an environment say of a fault, or of all known ones."""

    def __call__(self, check: Check, runner: Runner, phase: Phase) -> tuple[Outcome, ...]:
        """Observe the environment that `runner` runs commands in, and say whether the fault is there."""


class ProgramOutput(Model, frozen=True, kw_only=True):
    """What the output of a program that did not exit with 0 says of its failure."""

    kind: Literal["reported", "elsewhere", "other"]
    """The reported error again, what is no fault of an environment, or anything else."""
    why: str
    """The reason, in one line."""


class ProgramJudge(Protocol):
    """Reads the output of the user's program."""

    def __call__(self, check: Check, lines: Iterable[bytes], returncode: int | None, prefix: Path) -> ProgramOutput:
        """Say what `lines` tell of a program that ran in `prefix`; `returncode` is None while it is alive."""


class ProcessUser(Model, frozen=True, kw_only=True):
    """A process that runs from a prefix."""

    pid: int
    command: str
    why: str
    """``exe``, ``cwd`` or ``maps``."""


class ApplyOptions(Model, frozen=True, kw_only=True):
    """How a transaction may be carried out."""

    no_gpu: bool = False
    allow: tuple[AllowName, ...] = ()
    clone: CloneMode | Literal["auto"] = "auto"
    staging: StagingMode | Literal["auto"] = "auto"
    layout: Layout | None = None
    """What the environment becomes; None leaves it what it is."""
    offline: bool = False
    max_rounds: int = 4
    timeout_s: float | None = None
    """Limit for one check or step; None takes each one's own."""
    keep: int = 1
    """Generations kept for undo after this one."""
    profile: Literal["standard", "full"] = "standard"
    """Whether imports are checked that nothing of what changed can affect, too."""
    accept_worse: bool = False
    """Whether an install takes the environment's place although something that worked before does not afterwards."""
    share_links: bool = True
    """Whether the clone may share files by hard links; not with an installer that writes into files that it finds."""
    keep_partial: bool = False
    """Whether a repair may take the environment's place that leaves a part of what was reported."""
    witnesses: tuple[str, ...] = ()
    """Other machines that share the environment, on which the repaired copy has to pass its checks too."""
    machines: tuple[str, ...] = ()
    """All other machines that share it: they are asked for programs that use it; witnesses need not be among them."""
    witness_limit_s: float = 1800.0
    """Seconds in which all of them have to answer a question."""


# Plain structs from here on, not models: they hold functions and exceptions, and are never written as JSON.
class ExtendRequest(msgspec.Struct, frozen=True):
    """The state of the repair loop after the steps of a round."""

    plans: tuple[Plan, ...]
    """Those carried out in the clone, in order."""
    environment: Callable[[], Environment]
    """Probes the clone, as seen at the true path."""
    round: int
    """Rounds so far."""
    verified: bool
    """Whether checks ran after the steps and some failed; else only the facts may say that there is more to do."""
    failed: tuple[Outcome, ...] = ()
    """Checks that failed; where everything that decides passed, imports that fail still, otherwise than before."""
    error: EnvmedicError | None = None
    """What ended the last plan's steps, where they were not carried out."""
    good: int = 0
    """How many of the plans stand, since they proved themselves before the others."""


class PlanExtension(msgspec.Struct, frozen=True):
    """The repair loop's next plan."""

    plan: Plan
    because: str
    """Why there is another round, in one line."""
    keep: int
    """How many of the plans so far it follows. Fewer than all: the others are given up, in a fresh clone."""


class Means(msgspec.Struct, frozen=True):
    """The modes of a transaction, found by trying them."""

    clone: CloneMode
    staging: StagingMode
    exchange: ExchangeMethod
    clone_bytes: int
    """Upper estimate of the disk space that the clone takes at first."""
    notes: tuple[str, ...] = ()
    """Why not the better way."""


class Exchange(msgspec.Struct, frozen=True):
    """A pending exchange of a verified clone with the environment."""

    record: Record
    """The transaction so far: its plans, the parent generation, the outcomes, the method of exchange."""
    tree: str
    """The clone that takes the environment's path; afterwards this path has the old tree."""
    processes: tuple[ProcessUser, ...]
    """What runs from the environment now."""


def unedited(_edit: ProjectEdit) -> bool:
    """Answer of a front end that writes no files of a project."""
    return False


class UserCommand(msgspec.Struct, frozen=True):
    """The user's own command of an installer. Not part of a plan, since its words may hold secrets."""

    argv: Callable[[str], tuple[str, ...]]
    """The words as they run, by the environment's interpreter as commands must name it."""
    directory: str
    variables: Mapping[str, str] = {}
    """In addition to those of the activated environment."""
    outside: Callable[[], tuple[str, ...]] = tuple
    """Asked when it has ended: what it wrote outside of the environment, in sentences."""
    imports_of: Callable[[Collection[str]], frozenset[str]] = frozenset
    """The import names that these distributions alone provide, which are not missed where they were removed."""
    new_imports: Callable[[Path, Collection[str]], tuple[str, ...]] | None = None
    """The main import names of distributions of a tree."""
    hint: str | None = None
    """What to do where it fails."""


def _unforeseen(_tree: Path, _distributions: Collection[str]) -> AbstractContextManager[None]:
    return nullcontext()


# `engine` must not import its siblings `probe` and `installers`: `api` passes these functions instead.
class EnginePorts(msgspec.Struct, frozen=True):
    """Everything that a transaction uses from outside `engine`."""

    installer: Callable[[], Installer]
    """What installs wheels, asked for where some are: the way back needs none."""
    distributions: Callable[[Path], tuple[DistributionState, ...]]
    """Reads the installed distributions of a tree."""
    processes: Callable[[Path], tuple[ProcessUser, ...]]
    """Processes that run from a prefix, envmedic and its children apart."""
    gpu_visible: Callable[[], tuple[bool, str]]
    """Whether a GPU can be used, and if not why; where others are full, which."""
    confirm: Callable[[Plan], bool]
    """Asks before the first change and before each extension; the engine calls it for both."""
    extend: Callable[[ExtendRequest], PlanExtension | None] | None = None
    """The repair loop's next plan; None where the plan is never extended."""
    conda: CondaInstaller | None = None
    """Carries out what changes of the conda packages; None outside a conda prefix."""
    observe: Callable[[Path], Environment] | None = None
    """Observes a clone as it will be at the prefix; what `ExtendRequest.environment` is made from."""
    accept_partial: Callable[[tuple[Left, ...]], bool] | None = None
    """Asks whether a repair is kept that leaves this; None keeps none, unless the options say so."""
    edits_project: Callable[[ProjectEdit], bool] = unedited
    """Whether manifest and lock of the project are written too; asked before the clone is made and before the exchange."""
    before_exchange: Callable[[Exchange], bool] | None = None
    """Asks once more when the clone is proven, before it takes the environment's place; None goes on unasked."""
    host: Callable[[], Host] | None = None
    """Observes this machine; None where a proof of another time never counts."""
    command: UserCommand | None = None
    """What the step of an install runs."""
    unaffected: Callable[..., frozenset[str]] | None = None
    """Import names that changes between two trees, as paths and as distributions, cannot affect; None where all can. With
    `near`, what only something between can affect is left out too."""
    foresee: Callable[[Path, Collection[str]], AbstractContextManager[None]] = _unforeseen
    """Begins to find what a change of these distributions of a tree cannot affect, for `unaffected` within a block."""
