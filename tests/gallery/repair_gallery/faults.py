"""The faults. Each is made with the tools that make it in life, and shows in a program that then fails."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from .room import Base, Room

IMPORT = "import torch, torchvision, numpy, transformers; print(torch.__version__)"
NMS = (
    "import torch, torchvision; b = torch.tensor([[0., 0, 10, 10], [1, 1, 10, 10]]);"
    "print(torchvision.ops.nms(b, torch.tensor([.9, .8]), .5).tolist())"
)
SHARE = "import torch, numpy; assert torch.from_numpy(numpy.ones(2)).numpy().sum() == 2"
TOKENS = "from transformers import AutoConfig, PreTrainedTokenizerFast; print(AutoConfig.__name__)"
PTXAS = (
    "import subprocess, pathlib, triton;"
    "subprocess.run([pathlib.Path(triton.__path__[0]) / 'backends/nvidia/bin/ptxas', '--version'], check=True)"
)
SOLVE = "import numpy; from scipy.linalg import solve; solve(numpy.eye(3), numpy.ones(3))"
NUMBA = "import numba; numba.njit(lambda values: values.sum())"
FRAME = "import pandas; assert pandas.DataFrame({'a': [1, 2]}).a.sum() == 3"
PICTURE = "from PIL import Image; Image.new('RGB', (4, 4)).resize((2, 2))"
CONTOUR = "import contourpy, numpy; contourpy.contour_generator(z=numpy.eye(3)).lines(0.5)"
VISION = "import cv2, numpy; cv2.resize(numpy.zeros((4, 4, 3), 'uint8'), (2, 2))"


def _script(name: str, option: str) -> str:
    return f"import subprocess, sys; subprocess.run([sys.prefix + '/bin/{name}', '{option}'], check=True)"


TORCHRUN = _script("torchrun", "--help")
TQDM = _script("tqdm", "--version")
PIP = _script("pip", "--version")

PROBES: dict[Base, dict[str, str]] = {
    "torch": {
        "torch": IMPORT, "nms": NMS, "share": SHARE, "tokens": TOKENS, "picture": PICTURE, "torchrun": TORCHRUN,
        "pip": PIP, "tqdm": TQDM,
    },
    "plain": {
        "numpy": "import numpy; numpy.linalg.inv(numpy.eye(3))", "solve": SOLVE, "numba": NUMBA, "frame": FRAME,
        "picture": PICTURE, "vision": VISION, "tokens": TOKENS, "tqdm": TQDM, "pip": PIP,
        "click": "import click; click.command", "requests": "import requests, yaml, regex, safetensors",
        "protobuf": "from google.protobuf import struct_pb2; struct_pb2.Struct()",
        "f2py": _script("f2py", "-v"),
    },
    "light": {
        "numpy": "import numpy; numpy.linalg.inv(numpy.eye(3))", "frame": FRAME, "picture": PICTURE, "contour": CONTOUR,
        "click": "import click; click.command", "requests": "import requests", "tqdm": TQDM, "pip": PIP,
        "f2py": _script("f2py", "-v"),
    },
}  # fmt: skip
"""What works in the unbroken environment, and must after a repair."""


def _met(name: str) -> str:
    """A program that fails while a requirement of `name` is not met."""
    return (
        "from importlib.metadata import requires, version; from packaging.requirements import Requirement;"
        f"needs = [Requirement(line) for line in requires('{name}') or ()];"
        "left = [f'{n} ({version(n.name)})' for n in needs if (n.marker is None or n.marker.evaluate({'extra': ''}))"
        " and not n.specifier.contains(version(n.name), prereleases=True)]; assert not left, left"
    )


def _once(name: str) -> str:
    """A program that fails where `name` is installed twice, or not at all."""
    return (
        "from importlib.metadata import distributions;"
        f"found = [d.version for d in distributions() if d.metadata['Name'] == '{name}']; assert len(found) == 1, found"
    )


def _absent(name: str) -> str:
    """A program that fails while `name` is installed."""
    return (
        "from importlib.metadata import distributions;"
        f"assert not [d for d in distributions() if d.metadata['Name'] == '{name}']"
    )


Ending = Literal["repaired", "untouched", "refused"]


@dataclass(frozen=True)
class Fault:
    """One broken environment."""

    name: str
    fault: str | None
    """Class that the first finding should have; None for what is no fault of an environment."""
    make: Callable[[Room], None]
    program: str = IMPORT
    """Fails in the broken environment, and passes once the fault is gone."""
    silent: bool = False
    """Whether no user sees `program` fail: then there is no log."""
    log: str | None = None
    """The error text, where it is not what `program` says."""
    ending: Ending = "repaired"
    wants: tuple[str, ...] = ()
    """What the user asked for, and had, besides what `base` says."""
    touches: frozenset[str] = frozenset()
    """What it breaks; faults that break different things can be stacked. Empty: it stands alone."""
    base: Base = "torch"
    late: int = 0
    """Faults are made in this order: nothing can be installed any more once the interpreter is gone."""
    options: tuple[str, ...] = ()
    """More options for the repair."""
    says: str = ""
    """Pattern of what the refusal has to say."""
    scene: Callable[[Path], Room] | None = None
    """Makes the sound environment in a folder, where it is no copy of that of `base`."""
    reference: Callable[[Room], None] | None = None
    """A repair that is known to be one, where it is not the state before the fault."""
    probes: Mapping[str, str] = field(default_factory=dict, hash=False)
    """What works in the sound environment and must after a repair, where `base` does not say it."""


def _nothing(room: Room) -> None:
    del room


def _torchvision(version: str) -> Callable[[Room], None]:
    return lambda room: room.install(f"torchvision=={version}")


def _install(*requirements: str) -> Callable[[Room], None]:
    return lambda room: room.install(*requirements)


def _uninstall(*names: str) -> Callable[[Room], None]:
    return lambda room: room.uninstall(*names)


def _delete(*patterns: str) -> Callable[[Room], None]:
    return lambda room: room.delete(*patterns)


def _old_numpy_module(room: Room) -> None:
    """Pandas of the time before NumPy 2, with the newest NumPy of today."""
    room.install("pandas==2.1.4", "python-dateutil", "pytz", "six", "tzdata")


def _two_numpys(room: Room) -> None:
    """The metadata of an older NumPy beside that of the installed one."""
    info = next(room.site.glob("numpy-*.dist-info"))
    old = room.site / "numpy-1.26.4.dist-info"
    shutil.copytree(info, old)
    room.write(old / "METADATA", "Metadata-Version: 2.1\nName: numpy\nVersion: 1.26.4\n")


def _interrupted(room: Room) -> None:
    """What pip leaves when it is killed while it replaces torchvision."""
    room.rename("torchvision", "~orchvision")
    room.rename(next(room.site.glob("torchvision-*.dist-info")).name, "~orchvision-0.20.1.dist-info")


def _opencv(room: Room) -> None:
    """Two distributions of one import name, of which one was removed again."""
    room.install("opencv-python==4.10.0.84", "opencv-python-headless==4.10.0.84")
    room.uninstall("opencv-python-headless")


def _hidden(room: Room) -> None:
    """A path file that lets an old copy come first."""
    other = room.prefix / "old-packages"
    (other / "numpy").mkdir(parents=True)
    (other / "numpy" / "__init__.py").write_text("__version__ = '1.0'\n")
    room.write(room.site / "aaa-old.pth", f"import sys; sys.path.insert(0, {str(other)!r})\n")


def _pythonpath(room: Room) -> None:
    other = room.prefix / "old-packages"
    (other / "torchvision").mkdir(parents=True)
    (other / "torchvision" / "__init__.py").write_text("raise ImportError('an old torchvision')\n")
    room.variable("PYTHONPATH", str(other))


def _denied(room: Room) -> None:
    """Triton's programs as a copy through an object store leaves them."""
    for path in room.site.glob("triton/backends/nvidia/bin/*"):
        room.write(path, path.read_bytes())
        path.chmod(0o644)


def _moved(room: Room) -> None:
    """An environment whose directory was renamed: its files name the former one."""
    former = str(room.prefix.with_name("former")).encode()
    for path in [room.prefix / "pyvenv.cfg", *(room.prefix / "bin").iterdir()]:
        if path.is_file() and not path.is_symlink():
            room.write(path, path.read_bytes().replace(str(room.prefix).encode(), former))


def _scripts(gone: str, other: str) -> Callable[[Room], None]:
    """A script that is gone, and one that another Python runs."""

    def make(room: Room) -> None:
        (room.prefix / "bin" / gone).unlink()
        script = room.prefix / "bin" / other
        room.write(script, b"#!/opt/gone/bin/python3\n" + script.read_bytes().partition(b"\n")[2])

    return make


def _script_denied(name: str) -> Callable[[Room], None]:
    """A script as an archive without modes leaves it."""

    def make(room: Room) -> None:
        path = room.prefix / "bin" / name
        room.write(path, path.read_bytes())
        path.chmod(0o644)

    return make


def _other_python(room: Room) -> None:
    """Compiled modules of another Python, as a copied site-packages has them."""
    for path in sorted((room.site / "PIL").glob("_imaging.cpython-*.so")):
        path.rename(path.with_name("_imaging.cpython-39-x86_64-linux-gnu.so"))


def _interrupted_pillow(room: Room) -> None:
    """What pip leaves when it is killed while it replaces Pillow."""
    room.rename("PIL", "~IL")
    info = next(room.site.glob("pillow-*.dist-info")).name
    room.rename(info, f"~{info[1:]}")


def _old_click(room: Room) -> None:
    """An old answer on the web: a directory of one's own on PYTHONPATH."""
    other = room.prefix / "old-packages"
    (other / "click").mkdir(parents=True)
    (other / "click" / "__init__.py").write_text("raise ImportError('an old click')\n")
    room.variable("PYTHONPATH", str(other))


def _other_machine(room: Room) -> None:
    """A wheel for another kind of processor, as a lock made on a laptop brings it."""
    room.install("--reinstall", "--python-platform", "aarch64-unknown-linux-gnu", "contourpy==1.3.2")


def _headless(room: Room) -> None:
    """The other OpenCV came, and went with the files that both have."""
    room.install("opencv-python==4.12.0.88")
    room.uninstall("opencv-python")


def _no_pkg_resources(room: Room) -> None:
    """The newest setuptools under a package that still needs `pkg_resources`."""
    room.install("setuptools==82.0.1")


def _pinned(room: Room) -> None:
    """The user's own limits forbid every way out."""
    room.install("tokenizers==0.15.2")
    room.pin("tokenizers==0.15.2", "transformers==4.46.3")


def _base_python(room: Room) -> None:
    """The Python that it was made with is gone."""
    link = next(path for path in (room.prefix / "bin").glob("python*") if path.readlink().is_absolute())
    link.unlink()
    link.symlink_to("/opt/gone/bin/python3")
    settings = room.prefix / "pyvenv.cfg"
    lines = settings.read_text().splitlines()
    room.write(
        settings, "".join("home = /opt/gone/bin\n" if line.startswith("home") else f"{line}\n" for line in lines)
    )


def _both(*makers: Callable[[Room], None]) -> Callable[[Room], None]:
    def make(room: Room) -> None:
        for maker in makers:
            maker(room)

    return make


OUT_OF_MEMORY = (
    'Traceback (most recent call last):\n  File "train.py", line 10, in <module>\n    loss.backward()\n'
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.65 GiB\n"
)

OLD_NUMPY = (
    "ERROR: pip's dependency resolver does not currently take into account all the packages that are installed. This "
    "behaviour is the source of the following dependency conflicts.\n"
    'opencv-python-headless 4.12.0.88 requires numpy<2.3.0,>=2; python_version >= "3.9", but you have numpy 1.26.4 which '
    "is incompatible.\n"
)


def _touch(*names: str) -> frozenset[str]:
    return frozenset(names)


TORCH: tuple[Fault, ...] = (
    Fault("torchvision for torch 2.3", "torchvision-ops", _torchvision("0.18.1"), NMS, touches=_touch("torchvision")),
    Fault("torchvision for torch 2.4, which imports", "torchvision-ops", _torchvision("0.19.1"), NMS, touches=_touch("torchvision")),
    Fault("older nvJitLink", "nvidia-wheel-conflict", _install("nvidia-nvjitlink-cu12==12.1.105"), touches=_touch("nvjitlink")),
    Fault("older NCCL", "nvidia-wheel-conflict", _install("nvidia-nccl-cu12==2.18.1"), touches=_touch("nccl")),
    Fault("newer cuDNN", "cudnn-mismatch", _install("nvidia-cudnn-cu12==9.5.1.17"), _met("torch"), silent=True, touches=_touch("cudnn")),
    Fault("no cuDNN", "missing-cuda-library", _uninstall("nvidia-cudnn-cu12"), touches=_touch("cudnn")),
    Fault("no cuSPARSE", "missing-cuda-library", _uninstall("nvidia-cusparse-cu12"), touches=_touch("cusparse")),
    Fault("older NVRTC", "nvidia-wheel-conflict", _install("nvidia-cuda-nvrtc-cu12==12.1.105"), _met("torch"), silent=True, touches=_touch("nvrtc")),
    Fault("cuBLAS of CUDA 11 as well", "nvidia-wheel-conflict", _install("nvidia-cublas-cu11==11.10.3.66"), _absent("nvidia-cublas-cu11"), silent=True, touches=_touch("cublas")),
    Fault("older triton", "companion-version", _install("triton==3.0.0"), _met("torch"), silent=True, touches=_touch("triton")),
    Fault("torch: pandas built for NumPy 1", "numpy-abi", _old_numpy_module, "import pandas", touches=_touch("pandas")),
    Fault("torch: older tokenizers", "companion-version", _install("tokenizers==0.15.2"), TOKENS, touches=_touch("tokenizers")),
    Fault("torch: newest huggingface-hub", "companion-version", _install("huggingface-hub==1.0.0"), TOKENS, touches=_touch("hub")),
    Fault("torchvision without its library", "half-installed", _delete("torchvision/_C.so"), NMS, touches=_touch("torchvision")),
    Fault("torch: NumPy cut short", "half-installed", lambda room: room.cut("numpy/_core/_multiarray_umath*.so"), SHARE, touches=_touch("numpy")),
    Fault("torch half deleted", "half-installed", _delete("torch/nn/modules", "torch/_tensor.py"), touches=_touch("torch")),
    Fault("torch: transformers without its first file", "half-installed", _delete("transformers/__init__.py"), TOKENS, touches=_touch("transformers")),
    Fault("libc10 cut short", "half-installed", lambda room: room.cut("torch/lib/libc10.so"), touches=_touch("torch")),
    Fault("torch: two NumPys by metadata", "duplicate-install", _two_numpys, _once("numpy"), silent=True, touches=_touch("numpy")),
    Fault("an interrupted removal", "duplicate-install", _interrupted, NMS, touches=_touch("torchvision")),
    Fault("one OpenCV took the other along", "half-installed", _opencv, "import cv2; cv2.imread", touches=_touch("opencv")),
    Fault("an old NumPy by a path file", "duplicate-install", _hidden, SHARE, touches=_touch("numpy")),
    Fault("an old torchvision by PYTHONPATH", "duplicate-install", _pythonpath, NMS, touches=_touch("torchvision", "PYTHONPATH")),
    Fault("torchaudio built for torch 2.4", "companion-version", _install("torchaudio==2.4.1"), "import torchaudio", touches=_touch("torchaudio")),
    Fault("torchvision and NCCL", "nvidia-wheel-conflict", _both(_torchvision("0.18.1"), _install("nvidia-nccl-cu12==2.18.1")), NMS),
    Fault("tokenizers, triton and torchvision", "companion-version", _both(_install("tokenizers==0.15.2", "triton==3.0.0"), _torchvision("0.19.1")), TOKENS),
    Fault("half deleted, doubled and leftovers", "half-installed", _both(_delete("torchvision/_C.so"), _two_numpys, _delete("PIL/_imaging*.so")), NMS),
    Fault("pandas built for NumPy 1 and no cuDNN", "numpy-abi", _both(_old_numpy_module, _uninstall("nvidia-cudnn-cu12")), "import pandas, torch"),
    Fault("programs without permission", "half-installed", _denied, PTXAS, touches=_touch("triton")),
    Fault("torch: moved", "half-installed", _moved, TORCHRUN, touches=_touch("moved"), late=2),
    Fault("torch: scripts gone or of another Python", "half-installed", _scripts("torchrun", "transformers-cli"), TORCHRUN, touches=_touch("scripts")),
    Fault("torch: base Python gone", "half-installed", _base_python, touches=_touch("base"), late=3),
    Fault("torch: no pip", "companion-version", _uninstall("pip"), "import pip", touches=_touch("pip")),
    Fault("moved, base Python gone, programs without permission", "half-installed", _both(_denied, _moved, _base_python)),
    Fault("moved and no cuDNN", "half-installed", _both(_uninstall("nvidia-cudnn-cu12"), _moved)),
    Fault("torch: healthy", None, _nothing, silent=True, ending="untouched"),
    Fault("torch: healthy, edited by hand", None, lambda room: room.append(room.site / "transformers" / "__init__.py", "\n# by hand\n"), silent=True, ending="untouched"),
    Fault("torch: out of memory", None, _nothing, log=OUT_OF_MEMORY, ending="untouched"),
)  # fmt: skip
"""On real torch for CUDA: single faults, stacked ones, and controls."""

PLAIN: tuple[Fault, ...] = tuple(
    replace(fault, base="plain")
    for fault in (
        Fault("pandas built for NumPy 1", "numpy-abi", _install("pandas==2.1.4"), FRAME, touches=_touch("pandas")),
        Fault("older tokenizers", "companion-version", _install("tokenizers==0.15.2"), TOKENS, touches=_touch("tokenizers")),
        Fault("newest huggingface-hub", "companion-version", _install("huggingface-hub==1.0.0"), TOKENS, touches=_touch("hub")),
        Fault("Numba too old for its NumPy", "companion-version", _install("numba==0.60.0", "llvmlite==0.43.0"), NUMBA, touches=_touch("numpy", "numba")),
        Fault("NumPy newer than Numba and OpenCV allow", "companion-version", _install("numpy==2.4.0"), NUMBA, touches=_touch("numpy", "numba", "opencv")),
        Fault("NumPy older than OpenCV allows", "companion-version", _install("numpy==1.26.4"), _met("opencv-python-headless"), log=OLD_NUMPY, touches=_touch("numpy", "opencv")),
        Fault("setuptools without pkg_resources", "companion-version", _no_pkg_resources, "import fs", touches=_touch("setuptools"), wants=("fs==2.4.16", "setuptools<81")),
        Fault("no requests", "companion-version", _uninstall("requests"), TOKENS, touches=_touch("requests")),
        Fault("no pip", "companion-version", _uninstall("pip"), "import pip", touches=_touch("pip")),
        Fault("transformers without its first file", "half-installed", _delete("transformers/__init__.py"), TOKENS, touches=_touch("transformers")),
        Fault("SciPy half deleted", "half-installed", _delete("scipy/linalg/_basic.py", "scipy/sparse"), SOLVE, touches=_touch("scipy")),
        Fault("NumPy cut short", "half-installed", lambda room: room.cut("numpy/_core/_multiarray_umath*.so"), "import numpy", touches=_touch("numpy")),
        Fault("SciPy cut short", "half-installed", lambda room: room.cut("scipy/linalg/_fblas*.so"), SOLVE, touches=_touch("scipy")),
        Fault("Pillow compiled for another Python", "half-installed", _other_python, PICTURE, touches=_touch("pillow")),
        Fault("an interrupted removal of Pillow", "duplicate-install", _interrupted_pillow, PICTURE, touches=_touch("pillow")),
        Fault("the other OpenCV took this one along", "half-installed", _headless, VISION, touches=_touch("opencv")),
        Fault("two NumPys by metadata", "duplicate-install", _two_numpys, _once("numpy"), silent=True, touches=_touch("numpy")),
        Fault("an old NumPy first, by a path file", "duplicate-install", _hidden, "import numpy; numpy.ones", touches=_touch("numpy")),
        Fault("an old click by PYTHONPATH", "duplicate-install", _old_click, "import click; click.command", touches=_touch("click")),
        Fault("script without permission", "half-installed", _script_denied("f2py"), _script("f2py", "-v"), touches=_touch("f2py"), late=1),
        Fault("moved", "half-installed", _moved, TQDM, touches=_touch("moved"), late=2),
        Fault("scripts gone or of another Python", "half-installed", _scripts("tqdm", "transformers-cli"), TQDM, touches=_touch("scripts")),
        Fault("base Python gone", "half-installed", _base_python, "import numpy", touches=_touch("base"), late=3),
        Fault("pins that forbid every way out", "companion-version", _pinned, TOKENS, ending="refused", says=r"requirements\.txt"),
        Fault("no network", "half-installed", _delete("scipy/linalg/_basic.py"), SOLVE, ending="refused", options=("--offline",), says="offline|network|cache"),
        Fault("healthy", None, _nothing, silent=True, ending="untouched"),
        Fault("out of memory", None, _nothing, log=OUT_OF_MEMORY, ending="untouched"),
    )
)  # fmt: skip
"""On compiled wheels without torch."""

WITHOUT_MORE = frozenset({
    "pandas built for NumPy 1", "setuptools without pkg_resources", "no pip", "NumPy cut short",
    "Pillow compiled for another Python", "an interrupted removal of Pillow", "two NumPys by metadata",
    "an old NumPy first, by a path file", "an old click by PYTHONPATH", "script without permission", "moved",
    "base Python gone",
})  # fmt: skip
"""Faults that need neither torch nor transformers."""

LIGHT: tuple[Fault, ...] = tuple(
    replace(fault, base="light", name=f"light: {fault.name}")
    for fault in (
        *(fault for fault in PLAIN if fault.name in WITHOUT_MORE),
        Fault("no charset-normalizer", "companion-version", _uninstall("charset-normalizer", "idna"), "import requests; requests.get", touches=_touch("requests")),
        Fault("pandas half deleted", "half-installed", _delete("pandas/core/frame.py", "pandas/io"), FRAME, touches=_touch("pandas")),
        Fault("contourpy for another processor", "half-installed", _other_machine, CONTOUR, touches=_touch("contourpy")),
        Fault("no python-dateutil", "companion-version", _uninstall("python-dateutil"), FRAME, touches=_touch("dateutil")),
        Fault("scripts gone or of another Python", "half-installed", _scripts("tqdm", "numpy-config"), TQDM, touches=_touch("scripts")),
    )
)  # fmt: skip
"""On a few small wheels."""

FAULTS: tuple[Fault, ...] = (*TORCH, *PLAIN, *LIGHT)
