"""Credentials in URLs: removed from everything that is shown or stored, and looked up again for a download."""

from __future__ import annotations

import netrc
import os
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from pathlib import Path
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


def netrc_login(url: str, environ: Mapping[str, str] = os.environ) -> Login | None:
    """What the user's netrc file has for the host of `url`; a file that cannot be read has nothing."""
    host = urlsplit(url).hostname
    named = environ.get("NETRC")
    try:
        found = netrc.netrc(Path(named or "~/.netrc").expanduser()).authenticators(host) if host else None
    except (netrc.NetrcParseError, OSError, UnicodeError, RuntimeError):  # the last one: a user without a home
        return None
    # typeshed calls the fields optional; those that the file lacks are empty texts
    return (found[0] or found[1] or "", found[2] or "") if found and any(found) else None


def authorization(login: Login, header: str = "Authorization") -> dict[str, str]:
    """The header of Basic authentication."""
    return {header: "Basic " + b64encode(":".join(login).encode()).decode()}
