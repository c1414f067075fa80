"""A miniature torch family: pure-Python wheels with what real wheels have around their kernels.

``python -m tests.support.miniature DIR`` writes the wheels and a simple index of them. A release of
torch exports symbols and numbers its dispatch keys; an operator library names the symbols it needs
and registers its kernels under the numbers of the torch that it was built for. So the faults of a
wrong pair arise here as they do in the real one: 0.18.1 on torch 2.5.1 needs a symbol that is gone,
and 0.19.1 loads and registers its kernels one dispatch key off.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.index import write_index
from tests.support.wheels import Wheel, make_wheel

SOURCES = Path(__file__).resolve().parent.parent / "envs" / "nms_cuda" / "src"
SUMMARY = "A miniature for envmedic's demo and tests, in pure Python: not the real package"

_RUN_RECORD_FUNCTION = (
    "_ZN3c1010Dispatcher17runRecordFunctionERN2at14RecordFunctionESt17reference_wrapperIKNS_14FunctionSchemaEE"
    "NS_11DispatchKeyE"
)
_WITH_KEY_SET = _RUN_RECORD_FUNCTION.removesuffix("E") + "NS_14DispatchKeySetE"
"""torch 2.4 added a parameter: the name that libraries for 2.3 need is gone."""
_KEYS: tuple[str, ...] = ("", "FuncTorchBatched", "AutocastCPU", "AutocastXPU", "AutocastCUDA", "StartOfDenseBackends")
_KEYS += ("CPU", "CUDA", "Meta", "EndOfDenseBackends", "AutogradCPU", "AutogradCUDA")
_KEYS_WITH_MPS = (*_KEYS[:3], "AutocastMPS", *_KEYS[3:])
"""torch 2.5 put a key before the backends, which moves every later one."""

_SCHEMAS = {
    "torchvision::nms": "torchvision::nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "torchvision::roi_align": "torchvision::roi_align(Tensor input, Tensor rois, float spatial_scale, "
    "SymInt pooled_height, SymInt pooled_width, int sampling_ratio, bool aligned) -> Tensor",
}
_KERNELS = (
    ("torchvision::nms", "CUDA", "cuda_nms", "torchvision/csrc/ops/cuda/nms_kernel.miniature:1"),
    ("torchvision::nms", "CPU", "cpu_nms", "torchvision/csrc/ops/cpu/nms_kernel.miniature:1"),
    ("torchvision::roi_align", "CUDA", "cuda_roi_align", "torchvision/csrc/ops/cuda/roi_align_kernel.miniature:1"),
    ("torchvision::roi_align", "CPU", "cpu_roi_align", "torchvision/csrc/ops/cpu/roi_align_kernel.miniature:1"),
    (
        "torchvision::roi_align",
        "AutogradCPU",
        "autograd_roi_align",
        "torchvision/csrc/ops/autograd/roi_align.miniature:1",
    ),
)


@dataclass(frozen=True)
class Release:
    """What a release of torch looks like to an operator library, and what its version file says."""

    version: str
    cuda: str | None
    """None for a CPU build."""
    dispatch_keys: tuple[str, ...]
    exports: str

    @property
    def label(self) -> str:
        """Local version label of its builds."""
        return "cu" + self.cuda.replace(".", "") if self.cuda else "cpu"


TORCH = {
    "2.3.1": Release("2.3.1", "12.1", _KEYS, _RUN_RECORD_FUNCTION),
    "2.4.1": Release("2.4.1", "12.1", _KEYS, _WITH_KEY_SET),
    "2.5.1": Release("2.5.1", "12.4", _KEYS_WITH_MPS, _WITH_KEY_SET),
    "2.7.1": Release("2.7.1", "12.6", _KEYS_WITH_MPS, _RUN_RECORD_FUNCTION),
    "2.9.1": Release("2.9.1", "12.8", _KEYS_WITH_MPS, _WITH_KEY_SET),
}
BUILT_FOR = {"0.18.1": "2.3.1", "0.19.1": "2.4.1", "0.20.1": "2.5.1", "0.22.1": "2.7.1", "0.24.1": "2.9.1"}
"""torchvision → torch."""


def torch_wheel(directory: Path, version: str = "2.5.1") -> Wheel:
    """The miniature of one torch release."""
    release = TORCH[version]
    files = torch_files(release, f"{version}+{release.label}")
    return make_wheel(directory, "torch", version, files=files, summary=SUMMARY, requires_python=">=3.8")


def torch_files(release: Release, version: str) -> dict[str, str | bytes]:
    """Files of the miniature of a release, which says that it is `version`."""
    files = _sources("torch")
    files["torch/version.py"] = _version_file(version, release, hip=True)
    files["torch/_abi.py"] = (
        '"""What operator libraries bind to in this release."""\n\n'
        f"DISPATCH_KEYS = {release.dispatch_keys!r}\nEXPORTS = {(release.exports,)!r}\n"
    )
    return files


def torch_sources(version: str, cuda: str) -> dict[str, str | bytes]:
    """Files of a torch of that version, with its label, made for that CUDA."""
    files = _sources("torch")
    lines = [
        f"__version__ = '{version}'",
        "debug = False",
        f"cuda = '{cuda}'",
        "git_version = 'miniature'",
        "hip = None",
    ]
    files["torch/version.py"] = "\n".join(lines) + "\n"
    files["torch/_abi.py"] = (
        '"""What operator libraries bind to in this release."""\n\n'
        f"DISPATCH_KEYS = {_KEYS_WITH_MPS!r}\nEXPORTS = {(_WITH_KEY_SET,)!r}\n"
    )
    return files


def torchvision_wheel(directory: Path, version: str) -> Wheel:
    """The miniature of one torchvision release, built for the torch that the real one was built for."""
    release = TORCH[BUILT_FOR[version]]
    files = torchvision_files(release, f"{version}+{release.label}")
    requires = ["numpy", f"torch (=={release.version})", "pillow (!=8.3.*,>=5.3.0)"]
    return make_wheel(
        directory, "torchvision", version, files=files, requires=requires, summary=SUMMARY, requires_python=">=3.8"
    )


def torchvision_files(release: Release, version: str) -> dict[str, str | bytes]:
    """Files of the miniature of torchvision built for that release of torch, which says that it is `version`."""
    files = _sources("torchvision")
    files["torchvision/version.py"] = _version_file(version, release)
    files["torchvision/_C.miniature"] = _library(release)
    return files


def companions(directory: Path) -> list[Wheel]:
    """What torchvision requires besides torch, as empty as can be."""
    numpy = {"numpy/__init__.py": f'"""{SUMMARY}."""\n\n__version__ = "1.26.4"\n'}
    pillow = {"PIL/__init__.py": f'"""{SUMMARY}."""\n\n__version__ = "10.4.0"\n'}
    return [
        make_wheel(directory, "numpy", "1.26.4", files=numpy, summary=SUMMARY),
        make_wheel(directory, "pillow", "10.4.0", files=pillow, summary=SUMMARY),
    ]


def build(directory: Path, *, torch: str = "2.5.1") -> tuple[dict[str, Wheel], str]:
    """Write all wheels to ``directory/wheels`` and an index of them; return them by pin, and the index's URL."""
    folder = directory / "wheels"
    wheels = [
        torch_wheel(folder, torch),
        *(torchvision_wheel(folder, version) for version in BUILT_FOR),
        *companions(folder),
    ]
    return {wheel.requirement: wheel for wheel in wheels}, write_index(directory / "index", wheels)


def _sources(package: str) -> dict[str, str | bytes]:
    paths = sorted((SOURCES / package).rglob("*.py"))
    return {path.relative_to(SOURCES).as_posix(): path.read_bytes() for path in paths}


def _version_file(version: str, release: Release, *, hip: bool = False) -> str:
    lines = [f"__version__ = '{version}'", "debug = False", f"cuda = {release.cuda!r}"]
    lines += ["git_version = 'miniature'", *(["hip = None"] if hip else [])]
    return "\n".join(lines) + "\n"


def _library(release: Release) -> str:
    numbers = {name: number for number, name in enumerate(release.dispatch_keys)}
    header = {
        "needs": [release.exports],
        "schemas": _SCHEMAS,
        "kernels": [(operator, numbers[key], function, source) for operator, key, function, source in _KERNELS],
    }
    return json.dumps(header) + "\n" + (SOURCES / "operators.py").read_text(encoding="utf-8")


def main(arguments: Sequence[str]) -> int:
    """Build into the directory that is named."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m tests.support.miniature DIR\n")
        return 2
    wheels, index = build(Path(arguments[0]).resolve())
    sys.stdout.write("".join(f"{wheel.path}\n" for wheel in wheels.values()) + f"{index}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
