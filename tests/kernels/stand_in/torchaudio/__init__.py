"""torchaudio as far as the checks use it."""

from __future__ import annotations

import torch

torch.misbehave("import torchaudio")

from torchaudio import functional  # noqa: E402

__all__ = ["functional"]
