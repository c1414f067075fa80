"""The faults. Each is made with the tools that make it in life, and shows in a program that then fails."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from tests.gallery.room import Room

IMPORT = "import torch, torchvision, numpy, transformers; print(torch.__version__)"
NMS = (
    "import torch, torchvision; b = torch.tensor([[0., 0, 10, 10], [1, 1, 10, 10]]);"
    "print(torchvision.ops.nms(b, torch.tensor([.9, .8]), .5).tolist())"
)
SHARE = "import torch, numpy; assert torch.from_numpy(numpy.ones(2)).numpy().sum() == 2"
TOKENS = "from transformers import AutoConfig, PreTrainedTokenizerFast; print(AutoConfig.__name__)"
EVERYTHING = f"{IMPORT}; {NMS}; {SHARE}"
"""What works in the unbroken environment, and must after a repair."""

Ending = Literal["repaired", "untouched"]


@dataclass(frozen=True)
class Fault:
    """One broken environment."""

    name: str
    fault: str | None
    """Class that the first finding should have; None for what is no fault of an environment."""
    make: Callable[[Room], None]
    program: str = IMPORT
    """Fails in the broken environment, unless `silent`."""
    silent: bool = False
    """Whether only facts show it: then there is no log."""
    log: str | None = None
    """The error text, where it is not what `program` says."""
    ending: Ending = "repaired"


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


def _both(*makers: Callable[[Room], None]) -> Callable[[Room], None]:
    def make(room: Room) -> None:
        for maker in makers:
            maker(room)

    return make


OUT_OF_MEMORY = (
    'Traceback (most recent call last):\n  File "train.py", line 10, in <module>\n    loss.backward()\n'
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.65 GiB\n"
)

FAULTS: tuple[Fault, ...] = (
    Fault("torchvision for torch 2.3", "torchvision-ops", _torchvision("0.18.1"), NMS),
    Fault("torchvision for torch 2.4, which imports", "torchvision-ops", _torchvision("0.19.1"), NMS),
    Fault("older nvJitLink", "nvidia-wheel-conflict", _install("nvidia-nvjitlink-cu12==12.1.105")),
    Fault("older NCCL", "nvidia-wheel-conflict", _install("nvidia-nccl-cu12==2.18.1")),
    Fault("newer cuDNN", "cudnn-mismatch", _install("nvidia-cudnn-cu12==9.5.1.17"), silent=True),
    Fault("no cuDNN", "missing-cuda-library", _uninstall("nvidia-cudnn-cu12")),
    Fault("no cuSPARSE", "missing-cuda-library", _uninstall("nvidia-cusparse-cu12")),
    Fault("older NVRTC", "nvidia-wheel-conflict", _install("nvidia-cuda-nvrtc-cu12==12.1.105"), silent=True),
    Fault("cuBLAS of CUDA 11 as well", "nvidia-wheel-conflict", _install("nvidia-cublas-cu11==11.10.3.66"), silent=True),
    Fault("older triton", "companion-version", _install("triton==3.0.0"), silent=True),
    Fault("pandas built for NumPy 1", "numpy-abi", _old_numpy_module, "import pandas"),
    Fault("older tokenizers", "companion-version", _install("tokenizers==0.15.2"), TOKENS),
    Fault("newest huggingface-hub", "companion-version", _install("huggingface-hub==1.0.0"), TOKENS),
    Fault("torchvision without its library", "half-installed", _delete("torchvision/_C.so"), NMS),
    Fault("NumPy cut short", "half-installed", lambda room: room.cut("numpy/_core/_multiarray_umath*.so")),
    Fault("torch half deleted", "half-installed", _delete("torch/nn/modules", "torch/_tensor.py")),
    Fault("transformers without its first file", "half-installed", _delete("transformers/__init__.py"), TOKENS),
    Fault("libc10 cut short", "half-installed", lambda room: room.cut("torch/lib/libc10.so")),
    Fault("two NumPys by metadata", "duplicate-install", _two_numpys, silent=True),
    Fault("an interrupted removal", "duplicate-install", _interrupted, NMS),
    Fault("one OpenCV took the other along", "half-installed", _opencv, "import cv2; cv2.imread"),
    Fault("an old NumPy by a path file", "duplicate-install", _hidden, SHARE),
    Fault("an old torchvision by PYTHONPATH", "duplicate-install", _pythonpath, NMS),
    Fault("torchaudio built for torch 2.4", "companion-version", _install("torchaudio==2.4.1"), "import torchaudio"),
    Fault("torchvision and NCCL", "nvidia-wheel-conflict", _both(_torchvision("0.18.1"), _install("nvidia-nccl-cu12==2.18.1")), NMS),
    Fault("tokenizers, triton and torchvision", "companion-version", _both(_install("tokenizers==0.15.2", "triton==3.0.0"), _torchvision("0.19.1")), TOKENS),
    Fault("half deleted, doubled and leftovers", "half-installed", _both(_delete("torchvision/_C.so"), _two_numpys, _delete("PIL/_imaging*.so")), NMS),
    Fault("pandas built for NumPy 1 and no cuDNN", "numpy-abi", _both(_old_numpy_module, _uninstall("nvidia-cudnn-cu12")), "import pandas, torch"),
    Fault("healthy", None, _nothing, silent=True, ending="untouched"),
    Fault("healthy, edited by hand", None, lambda room: room.append(room.site / "transformers" / "__init__.py", "\n# by hand\n"), silent=True, ending="untouched"),
    Fault("out of memory", None, _nothing, log=OUT_OF_MEMORY, ending="untouched"),
)  # fmt: skip
"""Single faults, stacked ones, and controls."""
