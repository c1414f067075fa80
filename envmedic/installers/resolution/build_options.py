"""uv options for a wheel built from source against the distributions of an environment."""

from __future__ import annotations

from pathlib import Path

from envmedic.installers.index import configuration
from envmedic.installers.resolution import uv_options
from envmedic.model.plan import Rebuild
from envmedic.model.ports import ResolveRequest

OUT, CACHE = "out", "cache"
"""Directories in the workshop: the target of the install, and the cache in which uv leaves the built wheel."""


def arguments(step: Rebuild, python: str) -> tuple[str, ...]:
    """``uv pip install`` into a directory that is deleted afterwards, with a separate cache for this one wheel.

    uv's own cache must not be used: it may hold a wheel built in isolation, against another torch.
    """
    return (
        *("pip", "install", "--no-progress", f"--python={python}"),
        *(
            # An isolated build would compile against the newest torch of the index instead of the installed one.
            # uv has no `pip wheel`: an install into a target leaves the wheel in the cache.
            "--no-build-isolation",
            "--no-deps",
            f"--target={step.workshop}/{OUT}",
            f"--cache-dir={step.workshop}/{CACHE}",
        ),
        *_source_arguments(step, python),
        step.requirement(),
    )


def _source_arguments(step: Rebuild, python: str) -> tuple[str, ...]:
    """Index options for a release's source archive: the user's indexes without logins; other sources need none."""
    if step.source.kind != "index":
        return ("--no-config", "--no-index")
    read = configuration.read(Path(python).parent.parent)
    named = uv_options.translate(read, ResolveRequest(pins=())).indexes
    # The argv is shown and recorded, hence no logins in it. --no-binary: a wheel of the index was built for another
    # torch.
    return (f"--no-binary={step.distribution.name}", *(f"--index={url}" for url in named))
