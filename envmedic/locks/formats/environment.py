"""``environment.yml`` with a pip section, as ``conda env create`` reads it: versions and builds, no hashes.

Format: https://docs.conda.io/projects/conda/en/stable/user-guide/tasks/manage-environments.html
"""

from __future__ import annotations

import json
import re
from typing import Final

from envmedic.conda_meta.urls import canonical
from envmedic.locks import seal
from envmedic.locks.completeness import complete
from envmedic.locks.formats.requirements import requirement
from envmedic.locks.lock_format import LockFormat, has_dependencies, is_yaml
from envmedic.model.lock import Lock, LockedPackage

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9._=+/:@!~-]*")
"""Texts that YAML reads as strings without quotes, in any position."""
# readers of YAML 1.1 take these for booleans and null; 1.2 has fewer
_WORDS = frozenset({"y", "n", "yes", "no", "true", "false", "on", "off", "null"})
_DEFAULT_CHANNEL = "conda-forge"
"""Where the Python of an environment that has no conda packages is taken from."""


def text(lock: Lock) -> str:
    """The file. Entries that the format cannot hold are named in comments."""
    packages = complete(lock, FORMAT)
    conda = [item for item in packages if item.manager == "conda"]
    several = len({item.channel for item in conda}) > 1
    wanted = [_spec(item, named=several) for item in conda] or [f"python={lock.python}", "pip"]
    pip = [requirement(item) for item in packages if item.manager == "pip"]
    has_pip = not conda or any(item.name == "pip" for item in conda)
    lines = ["# Versions of what is installed; made by `envmedic lock`."]
    lines += [f"# {key}: {value}" for key, value in seal.facts(lock).items() if key != "name"]
    lines += [f"# not in it: {item.name} {item.version}: {item.reason}" for item in lock.incomplete]
    lines += [f"name: {scalar(lock.name or 'locked')}", "channels:"]
    lines += [f"  - {scalar(channel)}" for channel in _channels(lock)]
    lines += ["dependencies:", *(f"  - {scalar(item)}" for item in wanted)]
    if pip:
        lines += [] if has_pip else ["  - pip"]
        lines += ["  - pip:", *(f"    - {scalar(item)}" for item in pip)]
    return "\n".join(lines) + "\n"


def _channels(lock: Lock) -> list[str]:
    """Channels by the names of conda's own tools, and no others."""
    # without `nodefaults`, conda adds the channels of the reader's own configuration
    named = dict.fromkeys(canonical(channel) for channel in lock.channels) or {_DEFAULT_CHANNEL: None}
    return [*named, "nodefaults"] if "defaults" not in named else list(named)


def _spec(item: LockedPackage, *, named: bool) -> str:
    """``name=version=build``, with the channel where there are several: records do not tell their priority."""
    channel = f"{canonical(item.channel)}::" if named and item.channel else ""
    return f"{channel}{item.name}={item.version}" + (f"={item.build}" if item.build else "")


def scalar(word: str) -> str:
    """`word` as a YAML string."""
    plain = _PLAIN.fullmatch(word) is not None and word.lower() not in _WORDS and not word.endswith(":")
    return word if plain else json.dumps(word, ensure_ascii=False)


FORMAT: Final = LockFormat(
    name="environment",
    filename="environment.yml",
    about="what was asked for, for conda and mamba",
    holds="versions and builds, with a pip section; no hashes",
    read_by="`conda env create -f`",
    holds_conda=True,
    needs_conda=False,
    holds_hashes=False,
    needs_url=False,
    needs_pep440=False,
    holds_repositories=True,
    holds_subdirectories=True,
    holds_directories=False,
    holds_platforms=False,
    noun="an environment.yml",
    recognises=lambda path, content: is_yaml(path) and has_dependencies(content),
    write=text,
    read=None,
    unreadable="which has no hashes",
)
