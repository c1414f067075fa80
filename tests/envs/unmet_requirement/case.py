"""Builds the broken environments of this case from miniature wheels. See README.md."""

from __future__ import annotations

from pathlib import Path

from tests.support.native_case import NativeCase, build_native
from tests.support.repairs import pure, torch

PROGRAM = "import server\n\nprint('served')\n"
WORKS = "served\n"


def build(room: Path, *installed: str) -> NativeCase:
    """An environment with a torch, a `server` that imports a name of `router`, and the `installed` pins."""
    directory = room / "wheels"
    wheels = [
        torch(directory, requires=("typing-extensions>=4.8.0",)),
        pure(directory, "typing-extensions", "4.4.0", ""),
        pure(directory, "typing-extensions", "4.12.2", ""),
        pure(directory, "server", "1.0", "from starlette import routes\n", requires=("starlette<0.37.0,>=0.36.3",)),
        pure(directory, "starlette", "0.36.3", "routes = ()\n"),
        pure(directory, "starlette", "0.41.2", ""),
    ]
    return build_native(room, wheels, ["torch", "server", *installed], PROGRAM)
