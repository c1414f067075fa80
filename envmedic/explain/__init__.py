"""Faults and playbooks in words. Pure."""

from __future__ import annotations

from envmedic.explain.build import explain
from envmedic.explain.pages import PAGES

__all__ = ["PAGES", "explain"]
