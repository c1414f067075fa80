"""The one tree of errors that envmedic reports to people, and the exit code of each branch.

Every error says what happened (`summary`), the likely `cause`, one next step (`hint`) and what became of the user's
environment (`environment`). All front ends render the same object; whatever else is raised is a bug of envmedic.
"""

from __future__ import annotations

import errno
from enum import IntEnum

import envmedic

TYPE_CHECKING = False  # as in typing, which takes longer to load than `--version` may
if TYPE_CHECKING:
    from typing import ClassVar, Literal


class ExitCode(IntEnum):
    """Exit codes that scripts rely on."""

    OK = 0
    """Healthy, repaired and verified, a plan was made, or the answer is yes."""
    PROBLEM = 1
    """Problems found, a repair declined or impossible, or preflight, network or installer failed."""
    USAGE = 2
    """Usage or input error."""
    CONFIRMATION = 3
    """A confirmation is needed and there is no terminal to ask on."""
    CHECKS = 4
    """The checks of a repair failed or could not run; the environment is unchanged."""
    HOST = 5
    """A fault of the host: no repair of an environment can help."""
    BUSY = 6
    """The environment is busy, or an interrupted transaction needs recovery."""
    PARTIAL = 7
    """A part was repaired and kept, as agreed; what was reported fails still."""
    OTHER_CLASS = 8
    """The plan is for another class of environments than the one here, which is unchanged."""
    INTERNAL = 70
    """A bug of envmedic."""
    INTERRUPTED = 130
    """Interrupted by the user; the environment is unchanged."""


UNCHANGED = "unchanged"
RECOVERABLE = "recoverable"
CHANGED = "changed"
_NO_MEMORY = "annot allocate memory"
"""How ENOMEM reads at the end of what the dynamic loader says, in both of its spellings."""


class EnvmedicError(Exception):
    """Base of every error meant for the user.

    `code` is a stable machine-readable identifier; `environment` is ``unchanged``, ``recoverable`` (`envmedic recover`
    settles it) or ``changed`` (the exchange had taken place before the error). `allow` names what the user may lift to go
    on all the same, `outcome` what became of a plan for a class; each is None where there is no such thing.
    """

    exit_code: ClassVar[ExitCode] = ExitCode.PROBLEM
    code: ClassVar[str] = "error"
    allow: str | None = None
    outcome: Literal["other-class", "changed", "refused", "failed"] | None = None

    def __init__(
        self,
        summary: str,
        *,
        cause: str | None = None,
        hint: str | None = None,
        environment: str = UNCHANGED,
        details: tuple[str, ...] = (),
    ) -> None:
        super().__init__(summary)
        self.summary = summary
        self.cause = cause
        self.hint = hint
        self.environment = environment
        self.details = details


class InputError(EnvmedicError):
    """Something the user named cannot be used: a missing prefix, an unreadable file, a bad option."""

    exit_code = ExitCode.USAGE
    code = "input"


class NotAnEnvironment(InputError):
    """The prefix does not exist or holds no Python environment."""

    code = "not-an-environment"


class UnknownPlaybook(InputError):
    """No playbook has this id."""

    code = "unknown-playbook"


class InvalidPlaybook(InputError):
    """A playbook breaks the schema; `details` has one `file:line:column: key: message` per mistake."""

    code = "invalid-playbook"


class StalePlan(InputError):
    """The environment changed after the plan was made."""

    code = "stale-plan"


class OtherClass(EnvmedicError):
    """The plan is for another class of environments."""

    exit_code = ExitCode.OTHER_CLASS
    code = "other-class"


class PreflightError(EnvmedicError):
    """The transaction cannot start here: no space, no permission, a mount point, a protected env."""

    code = "preflight"


class NetworkError(EnvmedicError):
    """An index or a download could not be reached."""

    code = "network"


class IntegrityError(EnvmedicError):
    """A downloaded or given distribution is not what it should be (hash, zip, size)."""

    code = "integrity"


class InstallerError(EnvmedicError):
    """uv, pip, py-rattler or conda failed; `details` holds the end of its output."""

    code = "installer"


REPAIR_PACKAGES = {
    "conda_lock": "conda-lock",
    "rattler": "py-rattler",
    "rich": "textual",
    "textual": "textual",
    "tomlkit": "tomlkit",
    "uv": "uv",
}
"""Modules of the extra ``repair`` by the package that brings them."""


class RepairPackageMissing(InstallerError):
    """A package of the extra `repair` is not installed; with a uv on PATH only conda and the terminal UI need one."""

    code = "repair-package-missing"

    def __init__(self, package: str, *, environment: str = UNCHANGED) -> None:
        super().__init__(
            f"{package} is not installed beside envmedic",
            cause="The extra `repair` has it: uv, and what conda environments, conda-lock.yml and the terminal UI need",
            hint="Install them: pip install 'envmedic[repair]', or: uv tool install 'envmedic[repair]'",
            environment=environment,
        )


def missing_package(error: BaseException, *, environment: str = UNCHANGED) -> RepairPackageMissing | None:
    """The package of the extra ``repair`` whose absence raised `error`; None for every other error."""
    module = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    package = REPAIR_PACKAGES.get(module)
    return RepairPackageMissing(package, environment=environment) if package else None


class DamagedByteCode(EnvmedicError):
    """Python cannot read the byte code of a module of envmedic or of its dependencies."""

    code = "damaged-byte-code"

    def __init__(self, path: str, *, environment: str = UNCHANGED) -> None:
        summary, cause, hint = (text.format(path) for text in envmedic.DAMAGED)
        super().__init__(summary, cause=cause, hint=hint, environment=environment)


def damaged_byte_code(error: BaseException, *, environment: str = UNCHANGED) -> DamagedByteCode | None:
    """The file of byte code whose damage raised `error`; None for every other error."""
    path = envmedic.damaged_byte_code(error)
    return None if path is None else DamagedByteCode(path, environment=environment)


class NoSolution(EnvmedicError):
    """No coherent set of distributions exists for this host and environment; `details` says why."""

    code = "no-solution"
    held: tuple[str, ...] = ()
    """Installed distributions that were to stay and that candidates do not fit."""
    early: tuple[str, ...] = ()
    """Pre-releases with which there is a solution."""


class PinnedVersions(NoSolution):
    """No solution keeps the user's pins; `pins` has where each of those in the way stands, and what it says."""

    allow = "pinned"

    def __init__(
        self,
        summary: str,
        *,
        pins: tuple[tuple[str, str], ...],
        cause: str | None = None,
        details: tuple[str, ...] = (),
    ) -> None:
        super().__init__(
            summary,
            cause=cause,
            hint="Change what is stated there, then repair again; or let the plan walk around it: --allow pinned",
            details=details,
        )
        self.pins = pins


class NothingToRepair(EnvmedicError):
    """The fault neither reproduces nor is confirmed by facts."""

    code = "not-confirmed"


class RepairDeclined(EnvmedicError):
    """The user answered no."""

    code = "declined"


class ConfirmationNeeded(EnvmedicError):
    """No terminal to ask on, and no ``--yes``."""

    exit_code = ExitCode.CONFIRMATION
    code = "confirmation-needed"


class ChecksFailed(EnvmedicError):
    """A required check failed or could not run, so the clone was not swapped in."""

    exit_code = ExitCode.CHECKS
    code = "checks-failed"


class PartialRepair(ChecksFailed):
    """The steps repaired a part, and what was reported fails still; the clone was not swapped in."""

    code = "partial"


class HostFault(EnvmedicError):
    """The driver, the GPU or another part of the host is at fault."""

    exit_code = ExitCode.HOST
    code = "host-fault"


class EnvironmentBusy(EnvmedicError):
    """Another transaction, or processes that run from the prefix."""

    exit_code = ExitCode.BUSY
    code = "busy"


class RecoveryNeeded(EnvmedicError):
    """An interrupted transaction could not be settled automatically."""

    exit_code = ExitCode.BUSY
    code = "recovery-needed"


class Exhausted(EnvmedicError):
    """The system gave this process no more of something. That says nothing of what it was wanted for."""

    code = "exhausted"


class OutOfMemory(Exhausted):
    """The system gave this process no more memory, or none to a thread of it."""

    code = "out-of-memory"

    def __init__(self, *, environment: str = UNCHANGED) -> None:
        super().__init__(
            "There is not enough memory",
            cause="The system refused to give more of it to envmedic",
            hint="End other programs or raise the limit (`ulimit -v`, the container's or the job's), then do the same again",
            environment=environment,
        )


class OutOfFiles(Exhausted):
    """The system let this process open no more files."""

    code = "out-of-files"

    def __init__(self, *, environment: str = UNCHANGED) -> None:
        super().__init__(
            "Too many files are open",
            cause="The system refused to open one more for envmedic",
            hint="End other programs or raise the limit (`ulimit -n`, the container's or the job's), then do the same again",
            environment=environment,
        )


class Killed(Exhausted):
    """A program that envmedic needs was killed by SIGKILL, which the kernel sends where memory has run out."""

    code = "killed"

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what} was killed",
            cause="Somebody ended it by SIGKILL, or the kernel did because memory had run out",
            hint="End other programs or raise the limit of the container or the job, then do the same again",
        )


def exhausted(error: BaseException, *, environment: str = UNCHANGED) -> Exhausted | None:
    """What had run out where `error` was raised; None where it tells of something else."""
    number = error.errno if isinstance(error, OSError) else None
    if isinstance(error, MemoryError) or number == errno.ENOMEM:
        return OutOfMemory(environment=environment)
    if number in {errno.EMFILE, errno.ENFILE}:
        return OutOfFiles(environment=environment)
    # a compiled module that finds no room; the loader gives no number, and puts this alone before its reasons
    if isinstance(error, ImportError) and str(error).endswith(("failed to map segment from shared object", _NO_MEMORY)):
        return OutOfMemory(environment=environment)
    # the last two are what CPython makes of it: of a MemoryError that finds no memory itself, and of a thread
    if (type(error), str(error)) in {
        (SystemError, "error return without exception set"),
        (RuntimeError, "can't start new thread"),
    }:
        return OutOfMemory(environment=environment)
    return None


STORAGE_HINTS = {
    errno.EROFS: "Mount the file system writable again",
    errno.ENOSPC: "Make room on the file system",
    errno.EDQUOT: "Make room within the quota",
    errno.EACCES: "Get the right to write there, or run envmedic as the owner",
    errno.EPERM: "Get the right to write there, or run envmedic as the owner",
    errno.EIO: "See `dmesg` for the failing disk, and repair or replace it",
}
"""What helps where the file system refuses a call, by the number of the error."""


class StorageError(EnvmedicError):
    """The file system refused a call: it is read-only, full or failing, or permissions forbid it."""

    code = "storage"


def storage(error: BaseException, *, environment: str = UNCHANGED) -> StorageError | RecoveryNeeded | None:
    """The refusal of the file system that raised `error`; None for every other error."""
    number = error.errno if isinstance(error, OSError) else None
    hint = STORAGE_HINTS.get(number) if number is not None else None
    if hint is None:
        return None
    recoverable = environment == RECOVERABLE
    return (RecoveryNeeded if recoverable else StorageError)(
        "The file system refused to go on",
        cause=str(error),
        hint=f"{hint}, then {'run `envmedic recover`' if recoverable else 'do the same again'}",
        environment=environment,
    )


def require_spare(error: OSError) -> None:
    """Raise Exhausted where `error` says that memory or descriptors ran out, which makes nothing absent or damaged."""
    spent = exhausted(error)
    if spent is not None:
        raise spent from error


class InternalError(EnvmedicError):
    """A broken invariant inside envmedic."""

    exit_code = ExitCode.INTERNAL
    code = "internal"


class Interrupted(EnvmedicError):
    """The user pressed Ctrl-C or a signal asked to stop."""

    exit_code = ExitCode.INTERRUPTED
    code = "interrupted"
