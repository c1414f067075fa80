"""``environment.yml`` with a pip section, as ``conda env create`` reads it: no hashes.

It has versions and builds of everything, or what was asked for alone (`Lock.from_history`).

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
    several = len(lock.channels) > 1
    specs = _asked if lock.from_history else _exact
    wanted = [spec for item in conda for spec in specs(item, named=several)]
    wanted = wanted or [f"python={lock.python}", "pip"]
    pip = [requirement(item) for item in packages if item.manager == "pip"]
    has_pip = not conda or any(item.name == "pip" for item in conda)
    lines = [
        f"# {'What was asked for' if lock.from_history else 'Versions of what is installed'}; made by `envmedic lock`."
    ]
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


def _exact(item: LockedPackage, *, named: bool) -> list[str]:
    """``name=version=build``."""
    return [f"{_channel(item, named=named)}{item.name}={item.version}" + (f"={item.build}" if item.build else "")]


def _asked(item: LockedPackage, *, named: bool) -> list[str]:
    """The specs by which the package was asked for."""
    stated = ("::", "channel=", "://")
    return [
        spec if any(map(spec.__contains__, stated)) else _channel(item, named=named) + spec for spec in item.requested
    ]


def _channel(item: LockedPackage, *, named: bool) -> str:
    """The channel before a spec where there are several: records do not tell their priority."""
    return f"{canonical(item.channel)}::" if named and item.channel else ""


def scalar(word: str) -> str:
    """`word` as a YAML string."""
    plain = _PLAIN.fullmatch(word) is not None and word.lower() not in _WORDS and not word.endswith(":")
    return word if plain else json.dumps(word, ensure_ascii=False)


FORMAT: Final = LockFormat(
    name="environment",
    filename="environment.yml",
    about="what you asked for, for conda and mamba",
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
