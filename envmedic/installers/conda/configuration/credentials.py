"""Logins and tokens of channels: separated from addresses, and never shown."""

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
    """Credentials in `urls` by host, in the form of py-rattler's credentials file; the first of a host counts.

    https://rattler.prefix.dev/ ("RATTLER_AUTH_FILE"): ``{"host": {"BasicHTTP": {…}}}`` or ``{"CondaToken": …}``.
    """
    found: dict[str, Any] = {}
    for url in urls:
        host = urlsplit(url).hostname
        # By host without port: py-rattler looks credentials up that way.
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
    """`url` for the helper: without its credentials if `known` has the same ones for its host, else unchanged.

    py-rattler stores one login per host: a second login for the same host must stay in the address.
    """
    own, host = _credentials(url), urlsplit(url).hostname
    return url if own is not None and known.get(host or "") != own else without_credentials(url)


def shown(text: str) -> str:
    """`text` with every login and token replaced."""
    return _TOKEN_IN_TEXT.sub("/t/****/", redacted(text))
