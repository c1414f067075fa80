"""py-rattler's client, told what conda's configuration says of certificates, proxies and logins."""

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
    """Let py-rattler read `logins` (host → credentials) from memory: they are never on a disk.

    What the user's own file of them says stays, unless conda's configuration says something else of that host.
    """
    if not logins:
        return
    own = os.environ.get(AUTH_VARIABLE)
    known = json.loads(Path(own).read_bytes()) if own and Path(own).is_file() else {}
    descriptor = os.memfd_create("logins")
    with open(descriptor, "wb", closefd=False) as file:  # a descriptor
        file.write(json.dumps({**known, **logins}).encode())
    os.environ[AUTH_VARIABLE] = f"/proc/self/fd/{descriptor}"


def client(asked: Mapping[str, Any]) -> Client:
    """The client for requests. `asked` has ``verify`` (false, or a file of certificates) and ``proxies``."""
    from rattler.config import Config
    from rattler.networking.client import Client

    if isinstance(asked.get("verify"), str):
        os.environ["SSL_CERT_FILE"] = asked["verify"]
    lines = ["tls-no-verify = true"] if asked.get("verify") is False else []
    lines += ['tls-root-certs = "system"'] if isinstance(asked.get("verify"), str) else []
    proxies = asked.get("proxies") or {}
    if proxies:
        lines += ["[proxy-config]", *(f"{scheme} = {json.dumps(url)}" for scheme, url in sorted(proxies.items()))]
    return Client.from_config(Config.from_toml("\n".join(lines) + "\n"))
