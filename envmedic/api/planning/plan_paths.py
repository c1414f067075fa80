"""Path checks of a plan that was read from a file: anybody can write a plan with a valid digest."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from envmedic.errors import InputError
from envmedic.installers.wheels import download_cache
from envmedic.linked_prefix import STORE
from envmedic.model.conda import CondaChange
from envmedic.model.plan import Artifact, Install, Pin, Plan, Rebuild

_DIGEST = re.compile(r"[0-9a-f]{32}(?:[0-9a-f]{32})?")
_RECORD = re.compile(r"conda-meta/[^/\0]+\.json")


def refuse_other_places(made: Plan) -> None:
    """Raise InputError if a plan names files that envmedic would never choose, such as wheels outside the cache."""
    if not os.path.isdir(made.real_prefix):
        return  # the caller reports the missing environment
    wrong = next(_others(made), None)
    if wrong is not None:
        raise InputError(
            "The plan names a place that is none of envmedic's own",
            cause=wrong,
            hint="Make it again here with `envmedic plan -o FILE`, and do not apply plans of people whom you do not trust",
        )


def _others(made: Plan) -> Iterator[str]:
    prefix = Path(made.real_prefix)
    for step in made.steps:
        if isinstance(step, Install):
            yield from (item.local_path for item in step.artifacts if not _is_cached(item))
        elif isinstance(step, Rebuild):
            # a build writes there, so the path must be the one that envmedic itself chooses
            if step.workshop != os.fspath(prefix.parent / STORE / "build" / prefix.name / step.distribution.name):
                yield step.workshop
        elif isinstance(step, Pin):
            # a line break would add constraints that the user did not see in the plan
            yield from (line for line in (*step.constraints, *step.conda) if not line.isprintable())
        elif isinstance(step, CondaChange):
            yield from (item.filename for item in step.install if not _plain(item.filename, item.sha256 or item.md5))
            yield from (item.record for item in step.remove if _RECORD.fullmatch(item.record) is None)


def _is_cached(item: Artifact) -> bool:
    """Whether a wheel's path is its place in the wheel cache."""
    expected = download_cache.path_of(item.sha256, item.filename)
    return _plain(item.filename, item.sha256) and item.local_path == os.fspath(expected)


def _plain(filename: str, digest: str | None) -> bool:
    """Whether file name and digest are plain names inside a directory."""
    # a leading hyphen would be an option for pip or conda
    named = Path(filename).name == filename and "\0" not in filename and not filename.startswith(("-", "."))
    return named and (digest is None or _DIGEST.fullmatch(digest) is not None)
