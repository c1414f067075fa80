"""The proxy of a request: that of the user's variables, else that of pip's configuration."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from contextlib import suppress
from urllib.parse import urlsplit
from urllib.request import getproxies_environment, proxy_bypass


def proxy_of(url: str, of_pip: str | None) -> str | None:
    """Return the URL of the proxy for `url`, with its login; None where the host is asked directly."""
    parts = urlsplit(url)
    variables = getproxies_environment()  # by lower-case scheme, `all` and `no`
    found = variables.get(parts.scheme) or variables.get("all") or of_pip
    exempt = (item.strip() for item in variables.get("no", "").split(","))
    if not found or proxy_bypass(parts.netloc.rpartition("@")[2]) or _in_any(parts.hostname or "", exempt):
        return None
    return found if "://" in found else f"http://{found}"


def _in_any(host: str, networks: Iterable[str]) -> bool:
    """Whether the host is an address in one of the networks, which the standard library does not look at."""
    for network in networks:
        with suppress(ValueError):
            if ipaddress.ip_address(host) in ipaddress.ip_network(network, strict=False):
                return True
    return False
