"""py-rattler's HTTP client, with certificates, proxies and logins of conda's configuration."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rattler.networking.client import Client

AUTH_VARIABLE = "RATTLER_AUTH_FILE"


def give_logins(logins: Mapping[str, Any]) -> None:
    """Pass `logins` (host → credentials) to py-rattler in memory, never on disk.

    Entries of the user's own file stay, unless conda's configuration has a login for the same host.
    """
    if not logins:
        return
    own = os.environ.get(AUTH_VARIABLE)
    known = json.loads(Path(own).read_bytes()) if own and Path(own).is_file() else {}
    # py-rattler takes a path only; one in /proc/self/fd needs no file that a crash would leave behind.
    descriptor = os.memfd_create("logins")
    with open(descriptor, "wb", closefd=False) as file:  # open while py-rattler needs the path below
        file.write(json.dumps({**known, **logins}).encode())
    os.environ[AUTH_VARIABLE] = f"/proc/self/fd/{descriptor}"


def client(asked: Mapping[str, Any]) -> Client:
    """The client for requests. `asked` has ``verify`` (false, or a file of certificates) and ``proxies``."""
    from rattler.config import Config
    from rattler.networking.client import Client

    if isinstance(asked.get("verify"), str):
        # py-rattler's configuration cannot name a file: its "system" store reads this variable.
        os.environ["SSL_CERT_FILE"] = asked["verify"]
    lines = ["tls-no-verify = true"] if asked.get("verify") is False else []
    lines += ['tls-root-certs = "system"'] if isinstance(asked.get("verify"), str) else []
    proxies = asked.get("proxies") or {}
    if proxies:
        lines += ["[proxy-config]", *(f"{scheme} = {json.dumps(url)}" for scheme, url in sorted(proxies.items()))]
    return Client.from_config(Config.from_toml("\n".join(lines) + "\n"))
