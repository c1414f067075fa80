"""Use case ``lock``: installed packages, with files and hashes from every available source."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryFile

import msgspec

from envmedic import __version__
from envmedic.api.context.observation import observe, stage
from envmedic.api.context.settings import Settings
from envmedic.api.locking.lock_platforms import for_platforms
from envmedic.engine.store import installed_by_repairs, live_records
from envmedic.errors import EnvmedicError, InputError
from envmedic.installers import uv
from envmedic.installers.resolution import provenance
from envmedic.locks import collect, platforms, writing
from envmedic.locks.formats import LOCK_FORMATS, fitting
from envmedic.model.events import Notice
from envmedic.model.facts import Distribution, Environment, Facts
from envmedic.model.lock import Lock, LockFormatName
from envmedic.model.record import Record


def lock(settings: Settings, prefix: Path, *, must_ask: bool = False) -> Lock:
    """Return the lock of the environment at `prefix`, with what the indexes say of files that are not known here.

    An index that cannot be asked is a notice; with `must_ask`, NetworkError or InstallerError.
    """
    return lock_of(settings, observe(settings, prefix), ask=not settings.offline, must_ask=must_ask)


def lock_of(settings: Settings, facts: Facts, *, ask: bool = False, must_ask: bool = False) -> Lock:
    """Return the lock of an observed environment; indexes are asked where `ask` says so."""
    if facts.environment is None:
        raise AssertionError
    real = Path(facts.environment.real_prefix)
    behind = live_records.live_records(real)
    unreached: list[EnvmedicError] = []
    sources = provenance.FileSources(
        uv=uv.find_uv(),
        fetch=ask,
        unreached=None if must_ask else unreached.append,
        artifacts=installed_by_repairs.artifacts(behind),
        find_links=settings.find_links,
        torch_index=settings.torch_index,
    )
    with stage(settings.stream, "resolve"):
        known = provenance.find_files(facts.environment, _unknown(facts.environment), sources)
    for error in unreached:
        told = f"Hashes that only an index knows are missing: {error.summary}"
        settings.stream.emit(Notice(code="index-not-asked", message=told, level="warning"))
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    found = collect.collect(facts.environment, facts.host, known, envmedic=__version__, created=created)
    found = msgspec.structs.replace(found, asked=ask and not unreached)
    # the repair's checks say nothing about packages that changed after it
    proven = next((item for item in behind if item.plan.purpose != "snapshot"), None)
    return _verified(found, proven) if proven is not None and installed_by_repairs.unchanged(real, proven) else found


def _unknown(environment: Environment) -> Sequence[Distribution]:
    """Return the distributions whose metadata does not fully describe the file of their origin."""
    own = {"index", "archive", "unknown"}
    return [
        item
        for item in environment.distributions
        if not item.outside_prefix and item.origin.kind in own and not (item.owner == "conda" and environment.conda)
    ]


def _verified(found: Lock, record: Record) -> Lock:
    """Add the checks of the repair that passed on every device where they apply."""
    counted = [item for item in record.checks_after if item.applicable]
    short = {item.check for item in counted if item.status != "pass"}
    passed = sorted({item.check for item in counted} - short)
    return msgspec.structs.replace(found, transaction=record.transaction, verified=tuple(passed))


def lock_for(settings: Settings, prefix: Path, names: Sequence[str], *, must_ask: bool = False) -> Lock:
    """Return the lock for further platforms too. Raises InputError for an unknown one, NoSolution without packages."""
    facts = observe(settings, prefix)
    found = lock_of(settings, facts, ask=not settings.offline, must_ask=must_ask)
    return for_platforms(settings, facts, found, names)


def as_requested(found: Lock) -> Lock:
    """Return `found` as what the user asked for, for an environment.yml. Raises InputError where conda knows of nothing."""
    conda = [item for item in found.packages if item.manager == "conda" and item.requested]
    if not conda:
        raise InputError(
            "Nothing says what was asked for in this environment",
            cause="Neither conda-meta/history nor the records of its conda packages have a spec",
            hint="Leave out --from-history, for the versions of everything that is installed",
        )
    pip = [item for item in found.packages if item.manager == "pip"]
    # an installer that marks nothing leaves no other way to keep what it was asked for
    marked = [item for item in pip if item.requested] or pip
    return msgspec.structs.replace(found, packages=(*conda, *marked), from_history=True)


def require_platforms(names: Sequence[str], form: LockFormatName | None) -> None:
    """Raise InputError for a platform that cannot be locked in that format."""
    platforms.require(names, form or fitting(conda=True)[0])


def default_format(found: Lock) -> LockFormatName:
    """Return the format that can contain every package of an environment."""
    return _fitting(found)[0]


def _fitting(found: Lock) -> Sequence[LockFormatName]:
    return fitting(conda=any(item.manager == "conda" for item in found.packages))


def write_lock(
    found: Lock, form: LockFormatName, path: Path | None, *, allow_incomplete: bool = False
) -> tuple[Lock, str]:
    """Return `found` as judged for a format, and its text; write it to `path` if given.

    An incomplete lock is neither written nor returned as text, unless `allow_incomplete`; the missing entries are then
    comments. Raises InputError if it cannot be written, InstallerError without conda-lock.
    """
    judged, text = writing.written(_placed(found, path.parent if path is not None else Path.cwd()), form)
    if judged.incomplete and not allow_incomplete:
        return judged, ""
    if path is not None:
        writing.save(text, path)
        judged = msgspec.structs.replace(judged, path=str(path))
    return judged, text


def _placed(found: Lock, folder: Path) -> Lock:
    """Return `found` for a file in `folder`: local projects by their way from there, those outside its repository by none."""
    own = folder.resolve()
    root = next((item for item in (own, *own.parents) if (item / ".git").exists()), own)
    packages = tuple(
        item if item.path is None else msgspec.structs.replace(item, path=_way(Path(item.path).resolve(), own, root))
        for item in found.packages
    )
    return msgspec.structs.replace(found, packages=packages)


def _way(project: Path, folder: Path, root: Path) -> str | None:
    return os.path.relpath(project, folder) if project.is_relative_to(root) else None


def lock_files(
    settings: Settings, prefix: Path, forms: Sequence[LockFormatName], folder: Path, *, allow_incomplete: bool = False
) -> tuple[Lock, ...]:
    """Write the lock of `prefix` to `folder` in each format, under the file name that its tools expect.

    An incomplete lock is not written unless `allow_incomplete`. Raises InputError if a file cannot be written.
    """
    require_folder(folder)
    found = lock(settings, prefix)
    paths = {form: folder / LOCK_FORMATS[form].filename for form in forms}
    return tuple(write_lock(found, form, path, allow_incomplete=allow_incomplete)[0] for form, path in paths.items())


def lock_repair(settings: Settings, record: Record, folder: Path) -> Record:
    """Write the locks of a repaired environment to `folder`, and return the record with notes on them."""
    if record.environment != "repaired":
        return record
    try:
        return installed_by_repairs.noted(
            Path(record.plan.real_prefix), record, _written(settings, Path(record.prefix), folder)
        )
    # the repair is done and stays: a lock that cannot be written is a note, not an error
    except EnvmedicError as error:
        told = f"No lock was written: {error.summary}" + (f" ({error.cause})" if error.cause else "")
        return msgspec.structs.replace(record, notes=(*record.notes, told))
    except OSError as error:
        told = f"The record does not note the locks in {folder}: {error.strerror}"
        return msgspec.structs.replace(record, notes=(*record.notes, told))


def _written(settings: Settings, prefix: Path, folder: Path) -> tuple[str, ...]:
    found = lock(settings, prefix)
    return tuple(_told(found, form, folder) for form in _fitting(found))


def _told(found: Lock, form: LockFormatName, folder: Path) -> str:
    path = folder / LOCK_FORMATS[form].filename
    done, _ = write_lock(found, form, path, allow_incomplete=True)
    if not done.incomplete:
        return f"Locked in {path}"
    names = ", ".join(f"{item.name} {item.version}".strip() for item in done.incomplete)
    return f"Locked in {path}, without {names}: `envmedic lock --format {form}` says why"


def require_folder(folder: Path) -> None:
    """Create `folder` for locks. Raises InputError if no file can be written there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # a file is made, since permissions do not show every obstacle, such as a quota or a full disk
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        hint = "Name another directory with --lock"
        raise InputError(f"Locks cannot be written to {folder}", cause=error.strerror, hint=hint) from error
