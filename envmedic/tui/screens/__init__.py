"""One module for each screen."""

from __future__ import annotations
