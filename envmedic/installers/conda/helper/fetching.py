"""Downloads of packages: hashed as they arrive, and moved into place only with the expected hash."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envmedic.installers.conda.helper import network

if TYPE_CHECKING:
    from rattler.networking.client import Client

_AT_ONCE = 4
_TOLD_EVERY_S = 0.2


def fetch(request: dict[str, Any]) -> dict[str, Any]:
    """Download `packages` (``url``, ``path``, ``sha256`` or ``md5``); return the first failure, which ends the rest."""
    network.give_logins(request["logins"])
    return asyncio.run(_all(request))


async def _all(request: dict[str, Any]) -> dict[str, Any]:
    client, meter, gate = network.client(request["network"]), _Meter(), asyncio.Semaphore(_AT_ONCE)

    async def one(item: dict[str, Any]) -> dict[str, Any] | None:
        async with gate:
            return await _download(item, client, meter)

    tasks = [asyncio.ensure_future(one(item)) for item in request["packages"]]
    try:
        # No TaskGroup: Python 3.10 has none. A failure is a value here, since it must become JSON anyway.
        for task in asyncio.as_completed(tasks):
            failure = await task
            if failure is not None:
                return failure
    finally:
        for pending in tasks:
            pending.cancel()
        # Cancelled tasks must run their `finally`, which removes the partial files.
        await asyncio.gather(*tasks, return_exceptions=True)
    return {"fetched": len(tasks)}


async def _download(item: dict[str, Any], client: Client, meter: _Meter) -> dict[str, Any] | None:
    """Download one package; returns the failure, or None."""
    from rattler.package_streaming import download_to_writer

    path = Path(item["path"])
    partial = path.with_name(path.name + f".{os.getpid()}.partial")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with partial.open("xb") as file:
            writer = _Writer(file, meter)
            try:
                await download_to_writer(client, item["url"], writer)
            # Errors of our own writer pass through py-rattler: a full disk is not an unreachable channel.
            except OSError:
                raise
            except Exception as error:  # noqa: BLE001  # py-rattler's, of many kinds
                return {"unreachable": str(error), "url": item["url"]}
        found = writer.sha256.hexdigest() if item["sha256"] else writer.md5.hexdigest()
        if found != (item["sha256"] or item["md5"]):
            return {"damaged": item["url"], "found": found, "size": writer.size}
        partial.replace(path)
    except OSError as error:
        return {"disk": error.strerror or str(error), "errno": error.errno, "path": str(path)}
    finally:
        partial.unlink(missing_ok=True)
    return None


class _Writer:
    """A file that hashes what is written to it."""

    def __init__(self, file: Any, meter: _Meter) -> None:
        self._file, self._meter = file, meter
        self.sha256, self.md5, self.size = hashlib.sha256(), hashlib.md5(usedforsecurity=False), 0

    def write(self, data: bytes) -> int:
        """Write the next chunk."""
        self._file.write(data)
        self.sha256.update(data)
        self.md5.update(data)
        self.size += len(data)
        self._meter.add(len(data))
        return len(data)


class _Meter:
    """Prints the number of downloaded bytes to standard output."""

    def __init__(self) -> None:
        self._done, self._told = 0, 0.0

    def add(self, count: int) -> None:
        """Add `count`, and print at most every `_TOLD_EVERY_S`."""
        self._done += count
        if time.monotonic() - self._told > _TOLD_EVERY_S:
            self._told = time.monotonic()
            sys.stdout.write(json.dumps({"done": self._done}) + "\n")
            sys.stdout.flush()
