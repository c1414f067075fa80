"""Installation by py-rattler, in the helper process."""

from __future__ import annotations

from typing import Any

from envmedic.installers.conda.install.change_job import ChangeJob
from envmedic.installers.conda.install.install_verification import record_file
from envmedic.model.conda import CondaArtifact


def place(job: ChangeJob) -> None:
    """Install and remove packages; `carry_out` verifies and completes the change. Raises InstallerError.

    If commands see the clone at its own path, prefixes in files are written for the final path.
    """
    job.ask(
        "place",
        packages=[_package(item, job) for item in job.change.install],
        remove=[item.record for item in job.change.remove],
        final=None if job.seen == job.prefix else str(job.prefix),
    )


def _package(artifact: CondaArtifact, job: ChangeJob) -> dict[str, Any]:
    # py-rattler refuses a record without these keys, and an artifact may have no metadata of its channel.
    least = {
        "name": artifact.name,
        "version": artifact.version,
        "build": artifact.build,
        "build_number": 0,
        "depends": [],
        "subdir": artifact.subdir,
        "fn": artifact.filename,
        "channel": artifact.channel,
    }
    hashes = {"sha256": artifact.sha256, "md5": artifact.md5, "size": artifact.size_bytes}
    metadata = least | artifact.metadata | {key: value for key, value in hashes.items() if value is not None}
    return {
        "name": artifact.name,
        "record": record_file(artifact),
        "archive": job.archive(artifact).as_uri(),
        "url": artifact.url,
        "channel": metadata["channel"],
        "metadata": metadata,
    }
