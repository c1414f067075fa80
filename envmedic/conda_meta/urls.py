"""Channels and addresses as conda's records and history write them."""

from __future__ import annotations

import re

_USER = re.compile(r"(?<=://)[^/@\s]+@")
_TOKEN = re.compile(r"(?<=/)t/[^/\s]+/")
_ALIAS = "https://conda.anaconda.org/"
"""Where conda looks for a channel that is named without an address: its ``channel_alias``."""
_DEFAULTS = re.compile(r"https?://repo\.(?:anaconda|continuum)\.(?:com|io)/pkgs/[^/]+")
"""The channels that conda calls ``defaults``: https://docs.conda.io/projects/conda/en/stable/configuration.html."""
_SUBDIR = re.compile(r"(?:noarch|(?:linux|osx|win|freebsd|zos|emscripten|wasi)-[0-9a-z]+)")


def without_credentials(url: str) -> str:
    """`url` without user, password and token (``/t/TOKEN/``)."""
    return _TOKEN.sub("", _USER.sub("", url))


def is_subdir(word: str) -> bool:
    """Whether it is the name of a platform's part of a channel, such as ``linux-64``."""
    return _SUBDIR.fullmatch(word) is not None


def without_subdir(channel: str) -> str:
    """`channel`, an address or a name, without the platform's part at its end."""
    head, slash, last = channel.rstrip("/").rpartition("/")
    return head if slash and is_subdir(last) else channel.rstrip("/")


def canonical(channel: str) -> str:
    """The name by which conda's history calls a channel, given by its address or name, without its subdir.

    ``https://conda.anaconda.org/conda-forge`` is ``conda-forge``, Anaconda's own are ``defaults``, and any other is
    its address. A ``channel_alias`` or ``custom_channels`` of the user's is not known here.
    """
    plain = without_subdir(without_credentials(channel))
    if _DEFAULTS.fullmatch(plain) or plain.startswith("pkgs/"):
        return "defaults"
    return plain.removeprefix(_ALIAS) if plain.startswith(_ALIAS) else plain


def same(stated: str, channel: str) -> bool:
    """Whether `stated`, as a spec names a channel, means `channel`, given by its address or name."""
    wanted, given = canonical(stated), canonical(channel)
    return wanted == given or given.endswith(f"/{wanted.strip('/')}")
