"""Channel names and URLs in the spelling of conda's records and history."""

from __future__ import annotations

import re

_USER = re.compile(r"(?<=://)[^/@\s]+@")
# anaconda.org takes an access token as part of the path, /t/TOKEN/channel; in a path on disk, t is a directory
_TOKEN = re.compile(r"(?<=/)t/[^/\s]+/")
_ALIAS = "https://conda.anaconda.org/"
"""conda's default ``channel_alias``, the base URL of channels that are named without one."""
_DEFAULTS = re.compile(r"https?://repo\.(?:anaconda|continuum)\.(?:com|io)/pkgs/[^/]+")
"""The channels that conda calls ``defaults``: https://docs.conda.io/projects/conda/en/stable/configuration.html."""
_SUBDIR = re.compile(r"(?:noarch|(?:linux|osx|win|freebsd|zos|emscripten|wasi)-[0-9a-z]+)")


def without_credentials(url: str) -> str:
    """`url` without user, password and token (``/t/TOKEN/``)."""
    return url if url.startswith("file:") else _TOKEN.sub("", _USER.sub("", url))


def is_subdir(word: str) -> bool:
    """Whether `word` is the name of a platform directory of a channel, such as ``linux-64``."""
    return _SUBDIR.fullmatch(word) is not None


def without_subdir(channel: str) -> str:
    """Return `channel`, a URL or a name, without the platform directory at its end."""
    head, slash, last = channel.rstrip("/").rpartition("/")
    return head if slash and is_subdir(last) else channel.rstrip("/")


def canonical(channel: str) -> str:
    """Return the name of a channel in conda's history; `channel` is a URL or a name.

    ``https://conda.anaconda.org/conda-forge`` is ``conda-forge``, Anaconda's own channels are ``defaults``, and any
    other keeps its URL. The user's ``channel_alias`` and ``custom_channels`` are not taken into account.
    """
    plain = without_subdir(without_credentials(channel))
    if _DEFAULTS.fullmatch(plain) or plain.startswith("pkgs/"):
        return "defaults"
    return plain.removeprefix(_ALIAS) if plain.startswith(_ALIAS) else plain


def same(stated: str, channel: str) -> bool:
    """Whether `stated`, as a spec names a channel, means `channel`, given by its address or name."""
    wanted, given = canonical(stated), canonical(channel)
    # a spec may name a channel on a mirror by its last part: `conda-forge::x` from https://mirror/conda-forge
    return wanted == given or given.endswith(f"/{wanted.strip('/')}")
