"""uv's arguments for building a wheel from source against what an environment holds."""

from __future__ import annotations

from pathlib import Path

from envmedic.installers.index import configuration
from envmedic.installers.resolution import uv_options
from envmedic.model.plan import Rebuild
from envmedic.model.ports import ResolveRequest

OUT, CACHE = "out", "cache"
"""In the workshop: where the result would be installed, and the cache in which uv leaves the wheel itself."""


def arguments(step: Rebuild, python: str) -> tuple[str, ...]:
    """``uv pip install`` into a directory that is thrown away, with a cache that holds this one wheel.

    uv's own cache must not be asked: it may hold a wheel that was built in isolation, against another torch.
    """
    return (
        *("pip", "install", "--no-progress", f"--python={python}"),
        *(
            "--no-build-isolation",
            "--no-deps",
            f"--target={step.workshop}/{OUT}",
            f"--cache-dir={step.workshop}/{CACHE}",
        ),
        *_source_arguments(step, python),
        step.requirement(),
    )


def _source_arguments(step: Rebuild, python: str) -> tuple[str, ...]:
    """Where a release's source archive comes from: the user's indexes, named without logins; nothing for the others."""
    if step.source.kind != "index":
        return ("--no-config", "--no-index")
    read = configuration.read(Path(python).parent.parent)
    named = uv_options.translate(read, ResolveRequest(pins=())).indexes
    return (f"--no-binary={step.distribution.name}", *(f"--index={url}" for url in named))
