"""What a remedy decides on made facts."""

from __future__ import annotations

from collections.abc import Mapping

from envmedic.model.facts import Environment, Facts, Host
from envmedic.planner.remedies import Remedy, Situation, decide


def decided(
    name: str, environment: Environment, host: Host | None = None, *, groups: Mapping[str, str] | None = None
) -> Remedy:
    """The remedy of that name in that environment."""
    return decide(name, Situation(Facts(host=host or Host(), environment=environment), environment, groups or {}))
