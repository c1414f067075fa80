"""Distributions that an installer can uninstall: those whose metadata lists their files."""

from __future__ import annotations

from pathlib import Path

from envmedic.model.plan import InstalledReference, Purge


def removable_names(step: Purge, python: str) -> tuple[str, ...]:
    """Names in `step` that pip and uv can uninstall, each once; the others are removed by path (`Purge.leftovers`)."""
    prefix = Path(python).parent.parent
    return tuple(dict.fromkeys(item.name for item in step.distributions if removable(item, prefix)))


def removable(reference: InstalledReference, prefix: Path) -> bool:
    """Whether pip and uv can uninstall `reference`: its metadata lists its files, and conda does not own it."""
    if reference.owner == "conda":
        return False
    metadata = prefix / reference.metadata_path  # an absolute path replaces the prefix
    if not metadata.exists():
        return metadata.suffix == ".dist-info"  # planned for an environment that is not mounted here
    if metadata.suffix == ".dist-info":
        # Without RECORD, pip and uv refuse to uninstall.
        return (metadata / "RECORD").is_file()
    if metadata.suffix == ".egg-info":
        # A legacy install by setup.py has no RECORD; uv removes what top_level.txt names instead.
        return (metadata / "top_level.txt").is_file()
    return metadata.suffix == ".egg-link"
