"""Credentials in URLs: removed from everything that is shown or stored, and looked up again for a download."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import unquote, urlsplit, urlunsplit

from envmedic.redact import HIDDEN, redact_text

# The scheme is limited to 32 characters: an unlimited one takes quadratic time on a long word without "://".
_IN_TEXT = re.compile(r"(?P<scheme>\b[a-zA-Z][a-zA-Z0-9+.-]{0,31}://)[^/\s?#'\"]+@")

Login = tuple[str, str]


def without_credentials(url: str) -> str:
    """`url` without user and password."""
    parts = urlsplit(url)
    # rpartition: an unencoded "@" may stand in a password, never in a host.
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def redacted(text: str) -> str:
    """`text` with user and password of every URL in it replaced by ``****``, and other secrets hidden."""
    return redact_text(_IN_TEXT.sub(r"\g<scheme>****@", text)).replace(f"://{HIDDEN}@", "://****@")


def login_of(url: str) -> Login | None:
    """User and password that `url` carries, decoded."""
    userinfo, at, _ = urlsplit(url).netloc.rpartition("@")
    user, _, password = userinfo.partition(":")
    # Decoded, since requests sends these as they are in Basic authentication.
    return (unquote(user), unquote(password)) if at else None


def host_of(url: str) -> str:
    """Scheme, host and port of `url`: the scope of a login."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}".lower()


def logins(urls: Iterable[str]) -> dict[str, Login]:
    """The login of each scheme, host and port among `urls`; the first one wins."""
    found: dict[str, Login] = {}
    for url in urls:
        login = login_of(url)
        if login is not None:
            found.setdefault(host_of(url), login)
    return found
