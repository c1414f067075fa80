"""Cache of package files, verified and stored under their hashes.

The caches of conda and py-rattler hold unpacked packages that share hard links with environments: an edit in an
environment changes the cache too, and a reinstallation from there would bring the edit back. So only whole package
files are taken from these caches, after a comparison of their hash.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from envmedic.errors import IntegrityError, NetworkError, PreflightError
from envmedic.installers.conda.configuration.configuration import CondaConfiguration
from envmedic.installers.conda.configuration.credentials import logins, open_address
from envmedic.installers.conda.solve import helper_client
from envmedic.installers.conda.solve.solving import require_hashes, unreachable
from envmedic.installers.wheels import download_cache, wheel_files
from envmedic.installers.wheels.remote_metadata import local_file
from envmedic.model.conda import CondaArtifact
from envmedic.model.events import Emit, Notice, Progress

FETCH_S = 6 * 3600.0
_CHUNK = 1 << 20
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def path_of(artifact: CondaArtifact) -> Path:
    """Path of a package file in this user's cache, whether it exists or not."""
    folder = download_cache.root().with_name("conda")
    digest = artifact.sha256 or artifact.md5 or ""
    return folder / digest[:2] / digest / artifact.filename


def is_there(artifact: CondaArtifact) -> bool:
    """Whether the cache has it, so that nothing is downloaded."""
    return bool(artifact.sha256 or artifact.md5) and path_of(artifact).is_file()


def fetch(
    artifacts: Sequence[CondaArtifact],
    configured: Callable[[], CondaConfiguration],
    *,
    offline: bool,
    emit: Emit,
    timeout_s: float = FETCH_S,
) -> None:
    """Put every package file into the cache, verified.

    `configured` is called only if a file is missing. Raises NetworkError, IntegrityError, InstallerError or
    PreflightError (no space).
    """
    require_hashes(artifacts)
    absent = [item for item in artifacts if not _cached(item, emit)]
    if absent:
        _obtain(absent, configured(), emit, offline=offline, timeout_s=timeout_s)


def _cached(artifact: CondaArtifact, emit: Emit) -> bool:
    """Whether the cache has the file; deletes one with another hash."""
    target = path_of(artifact)
    if not target.is_file():
        return False
    if _is_sound(artifact, target):
        return True
    emit(Notice(code="damaged-cache", message=f"{target} was damaged and is fetched again", level="warning"))
    _unlink(target)
    return False


def _obtain(
    absent: Sequence[CondaArtifact], configuration: CondaConfiguration, emit: Emit, *, offline: bool, timeout_s: float
) -> None:
    missing = [item for item in absent if not _found_here(item, configuration.package_folders)]
    if missing and (offline or configuration.offline):
        raise _offline(missing)
    if missing:
        _download(missing, configuration, emit, timeout_s)


def _found_here(artifact: CondaArtifact, folders: Iterable[Path]) -> bool:
    """Whether the file was found on this machine, and copied into the cache."""
    local = local_file(artifact.url)
    # A local channel first, then the caches of conda.
    places = [*([local] if local is not None else []), *(folder / artifact.filename for folder in folders)]
    found = next((path for path in places if path.is_file() and _is_sound(artifact, path)), None)
    if found is not None:
        _copy(found, path_of(artifact))
    elif local is not None:
        raise _not_sound(artifact, local)
    return found is not None


def _is_sound(artifact: CondaArtifact, path: Path) -> bool:
    # Channels of old have MD5 only: it protects against damage, not against an attacker.
    digest = hashlib.sha256() if artifact.sha256 else hashlib.md5(usedforsecurity=False)
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
    # Another user's cache among pkgs_dirs is no error: the file is downloaded instead.
    except PermissionError:
        return False
    return digest.hexdigest() == (artifact.sha256 or artifact.md5)


def _copy(source: Path, target: Path) -> None:
    # With the process id: two processes may copy the same file, and the last rename wins with equal content.
    partial = target.with_name(f"{target.name}.{os.getpid()}.partial")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with source.open("rb") as original, partial.open("wb") as copy:
            if not wheel_files.share_blocks(original.fileno(), copy.fileno()):
                shutil.copyfileobj(original, copy, _CHUNK)
        partial.replace(target)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise _disk(target, error.errno or 0, error.strerror or str(error)) from error


def _unlink(path: Path) -> None:
    try:
        path.unlink()
    except OSError as error:
        raise _disk(path, error.errno or 0, error.strerror or str(error)) from error


def _download(
    missing: Sequence[CondaArtifact], configuration: CondaConfiguration, emit: Emit, timeout_s: float
) -> None:
    total = sum(item.size_bytes or 0 for item in missing)
    label = missing[0].filename if len(missing) == 1 else f"{len(missing)} packages"
    addresses = {item.url: configuration.with_login(item.url) for item in missing}
    known = logins(addresses.values())

    done = 0

    def tell() -> None:
        emit(Progress(stage="fetch", unit="bytes", done=done, total=total or None, label=label))

    def on_line(line: str) -> None:
        nonlocal done
        if line.startswith("{"):
            done = json.loads(line)["done"]
            tell()

    answer = helper_client.ask(
        {
            "do": "fetch",
            "packages": [
                {
                    "url": open_address(addresses[item.url], known),
                    "path": str(path_of(item)),
                    "sha256": item.sha256,
                    "md5": item.md5,
                }
                for item in missing
            ],
            "network": configuration.network,
            "logins": known,
        },
        timeout_s=timeout_s,
        on_line=on_line,
        poll=tell,
    )
    _raise_for(answer, missing)


def _raise_for(answer: dict[str, Any], missing: Sequence[CondaArtifact]) -> None:
    if "disk" in answer:
        raise _disk(Path(answer["path"]), answer["errno"], answer["disk"])
    if "unreachable" in answer:
        raise unreachable(answer["unreachable"], offline=False)
    if "damaged" in answer:
        # By file name: the answer's address may have a login that the artifact's has not.
        name = answer["damaged"].rpartition("/")[2]
        expected = next((item.sha256 or item.md5 for item in missing if item.filename == name), None)
        raise IntegrityError(
            f"{name} has another hash than announced",
            cause=f"expected {expected}, got {answer['found']} ({answer['size']} bytes)",
            hint="Plan again; if it stays, the channel or mirror serves other content than it announces",
        )


def _not_sound(artifact: CondaArtifact, path: Path) -> NetworkError | IntegrityError:
    if path.is_file():
        return IntegrityError(
            f"{artifact.filename} has another hash than announced",
            cause=f"{path} is not what its channel or the record says",
            hint="Plan again; if it stays, the channel must be indexed again",
        )
    return NetworkError(
        f"{artifact.filename} is not there any more",
        cause=f"{path} does not exist",
        hint="Bring the channel back, or plan again: another build may do",
    )


def _offline(missing: Sequence[CondaArtifact]) -> NetworkError:
    more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
    return NetworkError(
        f"{missing[0].filename}{more} is not on this machine, and --offline forbids to download it",
        cause=f"it lies at {missing[0].url}",
        hint="Run once without --offline; package files in conda's own caches are used too",
        details=tuple(item.url for item in missing),
    )


def _disk(path: Path, number: int, reason: str) -> PreflightError:
    hint = "Set XDG_CACHE_HOME to a directory that you can write to"
    return PreflightError(
        f"{path.name} cannot be written to the package cache",
        cause=f"{reason} at {path.parent}",
        hint="Free some space, or set XDG_CACHE_HOME to a directory on a larger disk" if number in _FULL else hint,
    )
