"""Pure functions from values to lines."""

from __future__ import annotations
