"""A build in a temporary environment of its own, for which another torch is fetched."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from pathlib import Path

from tests.gpu.replays.faults import extensions
from tests.gpu.replays.packing import pack
from tests.gpu.replays.replay import Command, NotHere, Replay
from tests.gpu.replays.room import Room

OTHER = "1.13.1"
OTHER_CUDA = "11.7"
GENUINE = (
    "torch_version.py", "_appdirs.py", "_vendor", "utils/cpp_extension.py", "utils/file_baton.py",
    "utils/_cpp_extension_versioner.py", "utils/hipify",
)  # fmt: skip
"""What builds import of torch, as it is in the environment."""
INIT = """\
from types import SimpleNamespace

from torch import version
from torch.version import __version__

cuda = SimpleNamespace(is_available=lambda: True, device_count=lambda: 1, get_device_capability=lambda *_: (8, 0))
_C = SimpleNamespace(_GLIBCXX_USE_CXX11_ABI=True)
backends = SimpleNamespace()
"""
"""As much of a torch as building an extension needs; it computes nothing."""
VERSION = f"__version__ = '{OTHER}'\ncuda = '{OTHER_CUDA}'\nhip = None\nxpu = None\nrocm = None\n"
PROJECT = """\
[build-system]
requires = ["setuptools", "torch<2"]
build-backend = "setuptools.build_meta"
"""
TOOLS = ("setuptools", "ninja", "packaging", "wheel")


def other_torch(room: Room, folder: Path) -> Path:
    """A wheel of an older torch with the environment's own builder: all that an isolated build gets of it."""
    torch = room.site / "torch"
    files = {"torch/__init__.py": INIT.encode(), "torch/version.py": VERSION.encode(), "torch/utils/__init__.py": b""}
    for name in GENUINE:
        paths = [torch / name] if (torch / name).is_file() else sorted((torch / name).rglob("*.py"))
        files |= {path.relative_to(room.site).as_posix(): path.read_bytes() for path in paths}
    info = f"torch-{OTHER}.dist-info"
    needs = "".join(f"Requires-Dist: {name}\n" for name in ("typing-extensions", "packaging") if _has(room, name))
    files[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: torch\nVersion: {OTHER}\n{needs}".encode()
    files[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: replay\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    rows = [f"{name},sha256={_digest(content)},{len(content)}" for name, content in files.items()]
    files[f"{info}/RECORD"] = "\n".join([*rows, f"{info}/RECORD,,", ""]).encode()
    path = folder / f"torch-{OTHER}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def _digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def _has(room: Room, name: str) -> bool:
    return bool(list(room.site.glob(f"{name.replace('-', '_')}-*.dist-info")))


def isolated(room: Room) -> Command:
    """An extension is installed from source as pip and uv do it by themselves, with a local index of wheels."""
    home = extensions.toolkit(room)
    if not all(_has(room, name) for name in TOOLS):
        absent = [name for name in TOOLS if not _has(room, name) and not list(room.wheels.glob(f"{name}-*.whl"))]
        if absent:
            raise NotHere(f"neither the environment nor --wheels {room.wheels} has {', '.join(absent)}")
    index = room.folder / "index"
    index.mkdir()
    for name in (*TOOLS, "typing_extensions"):
        for folder in (index, room.links):
            if _has(room, name):
                pack(room.site, name, folder)
            for path in room.wheels.glob(f"{name}-*.whl"):
                (folder / path.name).write_bytes(path.read_bytes())
    other_torch(room, index)
    folder = extensions.source(room)
    (folder / "pyproject.toml").write_text(PROJECT, encoding="utf-8")
    room.outside["CUDA_HOME"] = str(home)
    cache = room.folder / "uv-cache"
    uv = f"uv pip install --no-deps --no-index --find-links '{index}' --cache-dir '{cache}' --reinstall"
    return ("bash", "-c", f"{uv} --target '{room.folder}/built' '{folder}'")


REPLAYS = (
    Replay(
        "isolated-build",
        "a build in isolation that fetches another torch",
        frozenset({"build-isolation", "cuda-toolkit-mismatch"}),
        isolated,
        facts=False,
    ),
)
