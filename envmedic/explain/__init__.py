"""Explanations of faults and playbooks in words. Pure."""

from __future__ import annotations

from envmedic.explain.build import explain

__all__ = ["explain"]
