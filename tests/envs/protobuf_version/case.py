"""Builds the broken environments of this case from miniature wheels. See README.md."""

from __future__ import annotations

from pathlib import Path

from tests.support.native_case import SUMMARY, NativeCase, build_native
from tests.support.repairs import pure
from tests.support.wheels import Wheel, make_wheel

PROGRAM = "import graph_pb2\n\nprint('message')\n"
WORKS = "message\n"
GENERATED = """
from google.protobuf import __version__

_RUNTIME = tuple(map(int, __version__.split('.')))
if _RUNTIME >= (4,):
    raise TypeError('Descriptors cannot be created directly.')
"""


def protobuf(directory: Path, version: str) -> Wheel:
    """A runtime of that release."""
    files = {
        "google/__init__.py": "",
        "google/protobuf/__init__.py": f'"""{SUMMARY}."""\n\n__version__ = {version!r}\n',
    }
    return make_wheel(directory, "protobuf", version, files=files, summary=SUMMARY)


def build(room: Path, installed: str) -> NativeCase:
    """An environment with code that an old compiler generated, something that sets no limit, and a runtime."""
    directory = room / "wheels"
    generated = {"graph_pb2.py": f'"""{SUMMARY}."""\n{GENERATED}'}
    wheels = [
        *(protobuf(directory, version) for version in ("3.20.3", "4.25.5", "5.29.1")),
        make_wheel(
            directory, "graph-proto", "1.13.1", files=generated, requires=("protobuf<4,>=3.20.2",), summary=SUMMARY
        ),
        pure(directory, "board", "2.0", "", requires=("protobuf>=3.19.6,!=4.24.0",)),
    ]
    return build_native(room, wheels, ["graph-proto", "board", f"protobuf=={installed}"], PROGRAM)
