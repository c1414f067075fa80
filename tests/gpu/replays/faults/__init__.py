"""The faults, each provoked with the tools that make it in life."""

from __future__ import annotations

from tests.gpu.replays.faults import (
    compiler,
    extensions,
    isolation,
    libraries,
    shadows,
    stacked,
    torchvision,
    video,
)
from tests.gpu.replays.replay import Replay

REPLAYS: tuple[Replay, ...] = (
    *stacked.REPLAYS,  # what takes longest starts first
    *compiler.REPLAYS,
    *extensions.REPLAYS,
    *isolation.REPLAYS,
    *torchvision.REPLAYS,
    *libraries.REPLAYS,
    *shadows.REPLAYS,
    *video.REPLAYS,
)
