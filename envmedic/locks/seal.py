"""Digest of a lock file's entries, which reveals edits by hand. It is no signature: anyone can compute it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from envmedic.errors import InputError
from envmedic.model.lock import Lock

AGAIN = "Write it again with `envmedic lock`"


def digest(entries: object) -> str:
    """SHA-256 of `entries`, a JSON value, in canonical form."""
    # sorted keys and no spaces: equal values have one digest, however a file orders or indents them
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
    """The fields of a lock besides its entries, as texts by name; empty ones are left out."""
    # without the time: an unchanged environment gives the same bytes, which a repository and its reviewers can compare
    found = {
        "envmedic": lock.envmedic,
        "platform": lock.platform,
        "python": lock.python,
        "cuda": lock.cuda or "",
        "transaction": lock.transaction or "",
        "verified": ", ".join(lock.verified),
        "name": lock.name,
    }
    return {key: value for key, value in found.items() if value}


def restored(values: Mapping[str, str]) -> dict[str, object]:
    """Fields of a `Lock` from the texts of `facts`; empty for a lock of another tool."""
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
