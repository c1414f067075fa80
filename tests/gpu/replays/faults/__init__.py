"""The faults, each provoked with the tools that make it in life."""

from __future__ import annotations

from tests.gpu.replays.faults import extensions, libraries, shadows, stacked, torchvision
from tests.gpu.replays.replay import Replay

REPLAYS: tuple[Replay, ...] = (
    *torchvision.REPLAYS,
    *extensions.REPLAYS,
    *libraries.REPLAYS,
    *shadows.REPLAYS,
    *stacked.REPLAYS,
)
