"""The seal of a lock file: a digest of its entries, by which an edit by hand is told."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from envmedic.errors import InputError
from envmedic.model.lock import Lock

AGAIN = "Write it again with `envmedic lock`"


def digest(entries: object) -> str:
    """SHA-256 of `entries`, a value as JSON knows them, in one canonical form."""
    text = json.dumps(entries, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def require(entries: object, stated: str | None, source: str) -> None:
    """Raise InputError where `stated` is another digest; a lock of another tool has none."""
    if stated is not None and stated != digest(entries):
        raise InputError(
            f"{source} was edited after it was made",
            cause="Its entries do not agree with the digest that envmedic wrote into it",
            hint=f"{AGAIN}, or remove the digest if the edit is meant to be",
        )


def facts(lock: Lock) -> dict[str, str]:
    """What a lock says besides its entries, as words and texts."""
    found = {
        "envmedic": lock.envmedic,
        "created": lock.created,
        "platform": lock.platform,
        "python": lock.python,
        "cuda": lock.cuda or "",
        "transaction": lock.transaction or "",
        "verified": ", ".join(lock.verified),
        "name": lock.name,
    }
    return {key: value for key, value in found.items() if value}


def restored(values: Mapping[str, str]) -> dict[str, object]:
    """Fields of a `Lock` from what `facts` wrote; the text of another tool's lock gives empty ones."""
    return {
        "envmedic": values.get("envmedic", ""),
        "created": values.get("created", ""),
        "platform": values.get("platform", ""),
        "python": values.get("python", ""),
        "cuda": values.get("cuda"),
        "transaction": values.get("transaction"),
        "verified": tuple(filter(None, values.get("verified", "").split(", "))),
        "name": values.get("name", ""),
    }
