"""Parts that screens share."""

from __future__ import annotations
