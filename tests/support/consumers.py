"""Miniature wheels of JAX, CuPy and onnxruntime: the stand-ins of `tests/kernels`, with the metadata of the real ones."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from envmedic.compat import consumer_kinds as registry
from tests.support.native_case import SUMMARY, NativeCase, build_native
from tests.support.wheels import Wheel, make_wheel

STAND_IN = Path(__file__).resolve().parents[1] / "kernels" / "consumer_stand_in"
CUDNN = "nvidia-cudnn-cu12<10.0,>=9.8; extra == 'with-cuda'"


def stand_in(*packages: str) -> dict[str, str | bytes]:
    """The files of some stand-ins."""
    found = (path for name in packages for path in (STAND_IN / name).rglob("*.py"))
    return {str(path.relative_to(STAND_IN)): path.read_text(encoding="utf-8") for path in found}


def jax(directory: Path, version: str, *, cuda: Sequence[str] = ("12",)) -> list[Wheel]:
    """The parts of one release of JAX."""
    extras = tuple(f"cuda{number}" for number in cuda)
    asked = [f"jax-cuda{number}-plugin[with-cuda]=={version}; extra == 'cuda{number}'" for number in cuda]
    files = stand_in("jax") | {"lists.py": (STAND_IN / "lists.py").read_text(encoding="utf-8")}
    wheels = [
        make_wheel(directory, "jax", version, files=files, requires=(f"jaxlib=={version}", *asked), extras=extras, summary=SUMMARY),
        make_wheel(directory, "jaxlib", version, files=_stated("jaxlib", version), summary=SUMMARY),
    ]  # fmt: skip
    for number in cuda:
        name = f"jax_cuda{number}_plugin"
        versions = (STAND_IN / "jax_cuda12_plugin/_versions.py").read_text(encoding="utf-8")
        files = _stated(name, version) | {f"{name}/_versions.py": versions}
        wheels.append(
            make_wheel(directory, name.replace("_", "-"), version, files=files, requires=(f"jax-cuda{number}-pjrt=={version}", CUDNN),
                       extras=("with-cuda",), summary=SUMMARY)
        )  # fmt: skip
        runtime: dict[str, str | bytes] = {f"jax_plugins/xla_cuda{number}/__init__.py": ""}
        wheels.append(make_wheel(directory, f"jax-cuda{number}-pjrt", version, files=runtime, summary=SUMMARY))
    return wheels


def _stated(name: str, version: str) -> dict[str, str | bytes]:
    return {f"{name}/__init__.py": "", f"{name}/version.py": f"__version__ = {version!r}\n"}


def libraries(directory: Path, cuda: str, *, without: Sequence[str] = ()) -> Wheel:
    """A wheel with every library of NVIDIA of one release of CUDA, by name: nothing here opens one."""
    names = (item.soname[cuda] for item in registry.libraries().values() if cuda in item.soname)
    files: dict[str, str | bytes] = {f"nvidia/every/lib/{name}": b"" for name in names if name not in without}
    return make_wheel(directory, f"every-library-cu{cuda}", "1", files=files, summary=SUMMARY)


def cudnn(directory: Path, version: str) -> Wheel:
    """The wheel of cuDNN."""
    files: dict[str, str | bytes] = {"nvidia/cudnn/lib/libcudnn.so.9": version.encode()}
    return make_wheel(directory, "nvidia-cudnn-cu12", version, files=files, summary=SUMMARY)


def build(room: Path, wheels: Sequence[Wheel], installed: Sequence[str], program: str) -> NativeCase:
    """An environment of `installed` pins, with every library of CUDA 12 but cuDNN."""
    directory = room / "wheels"
    every = [libraries(directory, "12", without=("libcudnn.so.9",)), *wheels]
    return build_native(room, every, ["every-library-cu12", *installed], program)
