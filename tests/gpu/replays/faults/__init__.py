"""The faults, each provoked with the tools that make it in life."""

from __future__ import annotations

from tests.gpu.replays.faults import extensions, libraries, shadows, stacked, torchvision
from tests.gpu.replays.replay import Replay

REPLAYS: tuple[Replay, ...] = (
    *stacked.REPLAYS,  # what takes longest starts first
    *shadows.REPLAYS,
    *extensions.REPLAYS,
    *torchvision.REPLAYS,
    *libraries.REPLAYS,
)
