"""Logins and tokens of channels: kept apart from addresses, and never shown."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

from envmedic.conda_meta.urls import without_credentials
from envmedic.installers.index.credentials import login_of, redacted

_TOKEN = re.compile(r"/t/(?P<token>[^/]+)/")
_TOKEN_IN_TEXT = re.compile(r"/t/[^/\s'\"]+/")

__all__ = ["logins", "open_address", "shown", "without_credentials"]


def logins(urls: Iterable[str]) -> dict[str, Any]:
    """The credentials in `urls` by host, as py-rattler's file of them has it; the first of a host counts.

    https://rattler.prefix.dev/ ("RATTLER_AUTH_FILE"): ``{"host": {"BasicHTTP": {…}}}`` or ``{"CondaToken": …}``.
    """
    found: dict[str, Any] = {}
    for url in urls:
        host = urlsplit(url).hostname
        credentials = _credentials(url)
        if host and credentials:
            found.setdefault(host, credentials)
    return found


def _credentials(url: str) -> dict[str, Any] | None:
    token = _TOKEN.search(urlsplit(url).path)
    if token is not None:
        return {"CondaToken": token["token"]}
    login = login_of(url)
    return {"BasicHTTP": {"username": login[0], "password": login[1]}} if login else None


def open_address(url: str, known: dict[str, Any]) -> str:
    """What the helper is given for `url`: without its credentials where `known` has them for its host, else as it is.

    Two channels of one host with different logins are told apart only by what stands in their addresses.
    """
    own, host = _credentials(url), urlsplit(url).hostname
    return url if own is not None and known.get(host or "") != own else without_credentials(url)


def shown(text: str) -> str:
    """`text` with every login and token replaced."""
    return _TOKEN_IN_TEXT.sub("/t/****/", redacted(text))
