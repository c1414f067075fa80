"""What the checks use of torchvision."""

from __future__ import annotations

from types import SimpleNamespace

import torch
from torchvision import ops

torch.misbehave("import torchvision")
extension = SimpleNamespace(_has_ops=lambda: torch.FAULT != "no ops")

__all__ = ["extension", "ops"]
