"""A new environment, made beside its place and put there whole: nobody ever finds half of one.

Its place is held by an empty directory meanwhile, at which commands see it where the host allows that. What a crash
leaves beside it is removed the next time.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from envmedic.engine.fs.exchange import sync_directory, sync_filesystem
from envmedic.engine.stage import relocate
from envmedic.engine.stage.runners import NamespaceRunner, RelocateRunner, probe_namespace
from envmedic.errors import InputError, PreflightError
from envmedic.model.registries.modes import StagingMode
from envmedic.owner import require_own

_LONGEST_NAME = 200
StagingWish = StagingMode | None


@dataclass(frozen=True)
class Site:
    """Where an environment is being made."""

    prefix: Path
    """Where it will be, a real path."""
    tree: Path
    """Where its files lie meanwhile."""
    runner: NamespaceRunner | RelocateRunner

    @property
    def seen(self) -> Path:
        """Where commands see it."""
        return self.runner.prefix


@contextmanager
def made(prefix: Path, *, staging: StagingWish = None, poll: Callable[[], None] | None = None) -> Iterator[Site]:
    """Let the block make an environment, and put it at `prefix` when it ends well; else nothing is left of it.

    Raises InputError where there is something already, PreflightError where nothing can be made.
    """
    real = Path(os.path.realpath(prefix))
    require_free(real)
    with ExitStack() as stack:
        try:
            _sweep(real)
            tree = stack.enter_context(_beside(real))
            stack.callback(_free_again, real, existed=real.is_dir())
            real.mkdir(exist_ok=True)
        except OSError as error:
            raise PreflightError(
                f"{real} cannot be made", cause=f"{error.strerror}: {error.filename}", hint="Name another place with -p"
            ) from error
        site = _site(real, tree, staging, poll)
        yield site
        if isinstance(site.runner, RelocateRunner):
            relocate.rewrite(tree, tree, real)
        _put(tree, real)


def require_free(prefix: Path) -> None:
    """Raise InputError unless an environment can be made at `prefix`: nothing, or an empty directory, is there.

    Raises PreflightError as root where another user could exchange it.
    """
    require_own(prefix)
    if os.path.lexists(prefix) and (not prefix.is_dir() or any(prefix.iterdir())):
        raise InputError(
            f"{prefix} exists already",
            cause="A new environment is made where there is nothing",
            hint="Name another place with -p, or remove what is there",
        )
    if not prefix.parent.is_dir():
        raise InputError(f"{prefix.parent} does not exist", hint=f"Make it first: mkdir -p {prefix.parent}")


def _site(real: Path, tree: Path, staging: StagingWish, poll: Callable[[], None] | None) -> Site:
    probe = probe_namespace(real, tree) if staging != "relocate" else None
    if probe is not None and probe.ok:
        return Site(real, tree, NamespaceRunner(real, tree, pid_namespace=probe.pid_namespace, poll=poll))
    if staging == "namespace" and probe is not None:
        raise PreflightError(
            f"What is made cannot be shown at {real}", cause=probe.reason, hint="Leave --staging namespace out"
        )
    return Site(real, tree, RelocateRunner(tree, poll=poll))


def _stem(real: Path) -> str:
    return f".{real.name[:_LONGEST_NAME]}.envmedic-new-"


@contextmanager
def _beside(real: Path) -> Iterator[Path]:
    """A fresh directory beside the place, locked while it is in use, and gone afterwards if it is still there."""
    tree = Path(tempfile.mkdtemp(prefix=_stem(real), dir=real.parent))
    tree.chmod(0o755 & ~_umask())
    descriptor = os.open(tree, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield tree
    finally:
        _remove(tree)
        os.close(descriptor)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _sweep(real: Path) -> None:
    """Remove what a crash left: directories that nobody has locked."""
    for path in real.parent.glob(f"{_stem(real)}*"):
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            continue  # another envmedic is making it now
        else:
            _remove(path)
        finally:
            os.close(descriptor)


def _put(tree: Path, real: Path) -> None:
    """Give the tree its place, on disk before it is seen. Raises InputError when somebody else was there first."""
    sync_filesystem(tree)  # the directory alone would leave its files without content after a power cut
    try:
        tree.rename(real)
    except OSError as error:
        raise InputError(
            f"{real} is not empty any more", cause=error.strerror, hint="Something was put there meanwhile: look at it"
        ) from error
    sync_directory(real.parent)


def _free_again(real: Path, *, existed: bool) -> None:
    """Take the empty directory away that held the place; what is no longer empty is the environment."""
    if not existed and real.is_dir() and not any(real.iterdir()):
        real.rmdir()


def remove(prefix: Path) -> None:
    """Remove an environment that was just made and is not what it should be, in one step as others see it."""
    gone = Path(tempfile.mkdtemp(prefix=_stem(prefix), dir=prefix.parent))
    prefix.rename(gone / "env")
    _remove(gone)


def _remove(tree: Path) -> None:
    """Delete a tree, read-only directories in it too; one that is gone is no matter."""
    if not tree.is_dir():
        return
    for folder, _, _ in os.walk(tree):
        if not os.access(folder, os.W_OK | os.X_OK):
            Path(folder).chmod(0o700)
    shutil.rmtree(tree)
