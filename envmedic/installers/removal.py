"""What an installer can take away: only distributions that say which files are theirs."""

from __future__ import annotations

from pathlib import Path

from envmedic.model.plan import InstalledReference, Purge


def names(step: Purge, python: str) -> tuple[str, ...]:
    """Names in `step` that pip and uv can uninstall, each once; the rest goes by path (`Purge.leftovers`)."""
    prefix = Path(python).parent.parent
    return tuple(dict.fromkeys(item.name for item in step.distributions if removable(item, prefix)))


def removable(reference: InstalledReference, prefix: Path) -> bool:
    """Whether its metadata lists its files. What conda installed is conda's to remove."""
    if reference.owner == "conda":
        return False
    metadata = prefix / reference.metadata_path  # an absolute path stands for itself
    if not metadata.exists():
        return metadata.suffix == ".dist-info"  # planned for an environment that is not mounted here
    if metadata.suffix == ".dist-info":
        return (metadata / "RECORD").is_file()
    if metadata.suffix == ".egg-info":
        return (metadata / "top_level.txt").is_file()
    return metadata.suffix == ".egg-link"
