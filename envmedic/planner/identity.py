"""Identity of plans, and the test whether a plan still fits its environment."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import msgspec

from envmedic.model.facts import Environment
from envmedic.model.plan import Plan, Step

_INCIDENTAL = frozenset({"size_bytes", "local_path", "metadata"})
"""Fields that describe files and change nothing in what a step does."""


def plan_id(plan: Plan) -> str:
    """Return the SHA-256 of the plan's canonical JSON (sorted keys, no whitespace), its id left empty."""
    # the id is a part of the document, so it must not count for its own digest
    nameless = msgspec.structs.replace(plan, id="")
    return hashlib.sha256(msgspec.json.encode(nameless, order="deterministic")).hexdigest()


def named(plan: Plan) -> Plan:
    """Return `plan` with its id."""
    return msgspec.structs.replace(plan, id=plan_id(plan))


def steps_key(steps: Iterable[Step]) -> str:
    """Return a key of steps by what they do: equal steps have equal keys, whatever the sizes and records of files are."""
    return msgspec.json.encode([_bare(msgspec.to_builtins(step)) for step in steps], order="deterministic").decode()


def _bare(value: object) -> object:
    if isinstance(value, dict):
        # a build leaves a copy of another size, and a channel's record has the time of its upload
        return {name: _bare(item) for name, item in value.items() if name not in _INCIDENTAL}
    return [_bare(item) for item in value] if isinstance(value, list | tuple) else value


def verify_id(plan: Plan) -> bool:
    """Whether the plan's content agrees with its id."""
    return plan.id == plan_id(plan)


def stale(plan: Plan, environment: Environment) -> str | None:
    """Return why the plan no longer fits its environment, or None when it does."""
    # First: with another prefix the digests differ as well, and that reason would mislead.
    if environment.real_prefix != plan.real_prefix:
        return f"it was made for {plan.real_prefix}, and {environment.prefix} is {environment.real_prefix}"
    # an empty digest means that the files were not looked at, which proves nothing
    if not environment.digest or environment.digest != plan.environment_digest:
        return "installed files changed after it was made"
    return None
