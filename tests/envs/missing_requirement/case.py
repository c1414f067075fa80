"""Builds the broken environments of this case from miniature wheels. See README.md."""

from __future__ import annotations

from pathlib import Path

from tests.support.native_case import NativeCase, build_native
from tests.support.repairs import pure, torch

PROGRAM = "import server\n\nprint('served')\n"
WORKS = "served\n"


def build(room: Path, *installed: str, program: str = PROGRAM) -> NativeCase:
    """An environment with a torch, a `server`, what it imports, and the `installed` pins, without their requirements."""
    directory = room / "wheels"
    served = "from starlette import routes\nimport router\n"
    wheels = [
        torch(directory),
        pure(directory, "server", "1.0", served, requires=("starlette<0.37.0,>=0.36.3", "router")),
        pure(directory, "router", "2.0", "import yaml_next\n", requires=("yaml-next>=1.1",)),
        pure(directory, "yaml-next", "1.0", ""),
        pure(directory, "yaml-next", "1.2", ""),
        pure(directory, "starlette", "0.36.3", "routes = ()\n"),
        pure(directory, "starlette", "0.41.2", ""),
    ]
    return build_native(room, wheels, ["torch", "server", "router", *installed], program)
