"""Consumers of NVIDIA's libraries as they are installed: observations, never judgements."""

from __future__ import annotations

from typing import Literal

from envmedic.model.base import Model


class OpenedLibrary(Model, frozen=True, kw_only=True):
    """A library of NVIDIA that a consumer opens."""

    soname: str
    how: Literal["linked", "opened", "opened later"]
    """``linked``: by its own libraries; ``opened``: by name; ``opened later``: by name, when a function needs it."""
    path: str | None
    """The file that is there under that name, relative to the prefix if inside it; None without one."""
    seen: bool
    """Whether the consumer looks where it is."""


class Consumer(Model, frozen=True, kw_only=True):
    """One library that computes on GPUs through NVIDIA's libraries."""

    name: str
    """As in `compat.consumers`: ``jax``, ``tensorflow``."""
    version: str
    distributions: tuple[str, ...]
    """Its installed distributions, each as ``name version``."""
    build: str | None
    """The distribution that brings what runs on GPUs; None for a build for the CPU."""
    cuda: str | None
    """Major release of CUDA of that build, ``rocm`` for AMD's GPUs, None where it does not tell."""
    libraries: tuple[OpenedLibrary, ...] = ()
    sass: tuple[str, ...] = ()
    """Compute capabilities with machine code in its own libraries."""
    ptx: tuple[str, ...] = ()
    """Compute capabilities with PTX."""
