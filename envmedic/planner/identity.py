"""Identity of plans, and the test whether a plan still fits its environment."""

from __future__ import annotations

import hashlib

import msgspec

from envmedic.model.facts import Environment
from envmedic.model.plan import Plan


def plan_id(plan: Plan) -> str:
    """Return the SHA-256 of the plan's canonical JSON (sorted keys, no whitespace), its id left empty."""
    # the id is a part of the document, so it must not count for its own digest
    nameless = msgspec.structs.replace(plan, id="")
    return hashlib.sha256(msgspec.json.encode(nameless, order="deterministic")).hexdigest()


def named(plan: Plan) -> Plan:
    """Return `plan` with its id."""
    return msgspec.structs.replace(plan, id=plan_id(plan))


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
