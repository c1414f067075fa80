"""Use case ``check``: whether requirements would work in an environment, by tables, facts and a resolution."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from envmedic.api.context.observation import observe, stage
from envmedic.api.context.other_machine import platform_of
from envmedic.api.context.settings import Settings
from envmedic.api.context.wiring import installer_of, require_repair_packages
from envmedic.api.knowledge import newer_torch
from envmedic.errors import InstallerError, NetworkError, NoSolution
from envmedic.installers.index.credentials import without_credentials
from envmedic.model.answers.compatibility import Compatibility
from envmedic.model.ports import ResolveRequest
from envmedic.planner.asked import whatif


def check(settings: Settings, prefix: Path, requirements: Sequence[str]) -> Compatibility:
    """Return the answer for all `requirements` together. Changes nothing.

    Raises InputError for an invalid requirement, NetworkError if no index can be reached.
    """
    state = whatif.parse_requests(observe(settings, prefix), requirements)
    if not state.pending:
        return whatif.answer(state, whatif.ResolvedWay(None, None), ())
    require_repair_packages()  # not a reason against one of the ways
    newer_torch.learn_asked(settings, state.environment, state.pending)
    possible, considered = whatif.ways(state)
    return whatif.answer(state, _first(settings, state, possible), considered)


def _first(settings: Settings, state: whatif.WhatIfRequest, possible: Sequence[whatif.Way]) -> whatif.ResolvedWay:
    """Return the first way for which the installer finds wheels, with the reasons against those before it.

    Without a reachable index, a torch family from the tables is an answer too.
    """
    installer = installer_of(settings)
    refusals: list[str] = []
    for way in possible:
        request = _request(settings, state, way)
        try:
            with stage(settings.stream, "resolve"):
                resolution = installer.resolve(request, state.environment, settings.stream.emit)
        except (NoSolution, InstallerError) as error:
            refusals.append(f"{way.title}: {error.cause or error.summary}")
        except NetworkError as error:
            # the tables know which torch families were published; of any other package only the index knows
            if way.found is None:
                raise
            unasked = f"{error.summary}: what is said of {way.title} is from the data alone"
            return whatif.ResolvedWay(way, None, (*refusals, unasked), _index(request))
        else:
            return whatif.ResolvedWay(way, resolution, tuple(refusals), _index(request))
    return whatif.ResolvedWay(None, None, tuple(refusals))


def _request(settings: Settings, state: whatif.WhatIfRequest, way: whatif.Way) -> ResolveRequest:
    return ResolveRequest(
        pins=way.pins,
        variant=way.found.variant if way.found else None,
        needs_variant_index=way.needs_variant_index,
        replaceable=way.replaceable,
        find_links=settings.find_links,
        offline=settings.offline,
        torch_index=settings.torch_index,
        platform=platform_of(state.facts.host),
    )


def _index(request: ResolveRequest) -> str | None:
    if not request.needs_variant_index or request.variant is None:
        return None
    # shown in the answer, so without the password of a mirror
    return without_credentials(request.torch_index.replace("{variant}", request.variant))
