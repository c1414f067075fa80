"""Rows of a torch that is newer than the tables, from what an index and its own wheels say. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from envmedic.compat import published, tables, versions
from envmedic.compat.published import CompanionRelease, TorchRelease
from envmedic.compat.table_rows import Companion, TorchAbi, TorchTables
from envmedic.model.answers.family import Offered

COMPANIONS = ("torchvision", "torchaudio")


def is_newer(release: str) -> bool:
    """Whether a torch comes after every release of the tables."""
    return all(versions.parsed(release) > versions.parsed(known) for known in tables.releases())


def doubt(release: str) -> str:
    """Return what an answer about a learned torch says of itself."""
    return (
        f"torch {release} is newer than the tables: what is said of it was read from its own wheel, and is less certain"
    )


def rows(
    found: TorchRelease, companions: Iterable[CompanionRelease], triton: Mapping[str, Sequence[Offered]]
) -> TorchTables:
    """Return what the tables would have of the release: its builds, Pythons and requirements, and the companions for it.

    The oldest driver of a CUDA that the tables do not know stays unknown, so that such a build is refused.
    """
    known = published.pythons(found.files)
    named = [*tables.releases(), found.version]
    new = [published.companion_row(item, None, named, known) for item in companions]
    extended = [_extended(row, found.version) for name in COMPANIONS for row in tables.companions(name).values()]
    fitting = [*(row for row in extended if row is not None), *(row for row in new if found.version in row.torch)]
    best = {name: _newest(row for row in fitting if row.name == name) for name in COMPANIONS}
    return TorchTables(
        releases=(published.release_row(found, best["torchvision"], best["torchaudio"]),),
        python_wheels=published.python_rows(found, known),
        default_wheels=(published.default_row(found),),
        variants=tuple(published.variant_rows(found, known)),
        companions=tuple(fitting),
        companion_variants=(),
        triton=tuple(published.triton_row(version, files, known) for version, files in triton.items()),
        conda=(),
        abi=(TorchAbi(torch=found.version, numpy_abi={}, source=(published.told(found.first),)),),
    )


def _extended(row: Companion, torch: str) -> Companion | None:
    """Return the row of a known companion whose own requirement accepts the new torch too."""
    if not row.declared or row.spec is None or not versions.allows(row.spec, torch):
        return None
    return msgspec.structs.replace(row, torch=(*row.torch, torch))


def _newest(rows: Iterable[Companion]) -> str:
    return max((row.version for row in rows), key=versions.parsed, default="")
