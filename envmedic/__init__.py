"""envmedic repairs broken PyTorch/CUDA environments: diagnose, plan, apply in a clone, undo."""

from __future__ import annotations

__version__ = "0.1.0"
