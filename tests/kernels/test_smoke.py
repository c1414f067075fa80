"""Extension packages are called, each in a process of its own, and wrong ones show."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from envmedic.compat.guides import guides
from tests.kernels.driving import STAND_IN, drive, spec

PACKAGES: Mapping[str, str] = {
    "mmcv/__init__.py": "",
    "mmcv/ops.py": """
import torch, torchvision
def nms(boxes, scores, threshold):
    torch.misbehave("mmcv")
    kept = torchvision.ops.nms(boxes, scores, threshold)
    kept.data = torch.spoiled(kept.data, "mmcv", boxes.where)
    return boxes, kept
""",
    "torch_scatter.py": """
import torch
def scatter_max(numbers, groups):
    torch.misbehave("torch_scatter")
    best = [max(n for n, g in zip(numbers.data, groups.data) if g == group) for group in range(9)]
    return torch.Tensor(torch.spoiled(best, "torch_scatter", numbers.where), (9,), numbers.dtype, numbers.where), None
""",
    "flash_attn.py": """
import torch
from torch.nn.functional import scaled_dot_product_attention
def turned(tensor):
    rows = [[list(heads) for heads in zip(*tensor.tolist()[0])]]
    shape = (1, tensor.shape[2], tensor.shape[1], tensor.shape[3])
    return torch.Tensor(torch._flat(rows), shape, tensor.dtype, tensor.where)
def flash_attn_func(query, key, value):
    torch.misbehave("flash_attn")
    result = turned(scaled_dot_product_attention(*(turned(tensor) for tensor in (query, key, value))))
    result.data = torch.spoiled(result.data, "flash_attn", query.where)
    return result
""",
}
"""Miniatures of packages, on the stand-in."""
INSTALLED = {"mmcv": "mmcv", "torch-scatter": "torch_scatter", "flash-attn": "flash_attn"}
GPU = "cuda:0 Stand-in GPU"


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("packages")
    for name, source in PACKAGES.items():
        (directory / name).parent.mkdir(exist_ok=True)
        (directory / name).write_text(source)
    return directory


def smoke(
    packages: Path, fault: str, names: tuple[str, ...] = tuple(INSTALLED), limit_s: float = 60
) -> dict[str, dict[str, Any]]:
    path = f"{STAND_IN}:{packages}"
    settings = {"GPUS": "1", "CUDA_BUILD": "12.4", "FAULT": fault, "PYTHONPATH": path}
    limits = {"extension-smoke": limit_s, "autograd": 60.0}  # the longest limit is that of importing torch
    found = drive("--spec", spec(limits, extension_smoke=names), variables=settings)
    found.pop(("autograd", GPU))
    assert {device for _, device in found} == {GPU}
    return {check.removeprefix("extension-smoke "): outcome for (check, _), outcome in found.items()}


def test_every_package_of_the_data_has_a_call_or_a_reason_for_none(tmp_path: Path) -> None:
    names = sorted(guides())
    found = smoke(tmp_path, "", tuple(names))
    assert sorted(found) == names
    assert {outcome["status"] for outcome in found.values()} == {"skip"}
    for name, outcome in found.items():
        absent = outcome["reason"].endswith("is not installed")
        assert outcome.get("applicable", True) is absent, name


def test_packages_that_compute_right_pass(packages: Path) -> None:
    for name, outcome in smoke(packages, "").items():
        assert outcome["status"] == "pass", (name, outcome)
        assert outcome["max_relative_error"] <= outcome["tolerance"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("what", "status"),
    [("zeros", "fail"), ("last", "fail"), ("error", "fail"), ("segfault", "crash"), ("hang", "timeout")],
)
def test_those_that_do_not_are_told(packages: Path, what: str, status: str) -> None:
    fault = ";".join(f"{what} at {place}" for place in INSTALLED.values())
    found = smoke(packages, fault, limit_s=1 if what == "hang" else 60)
    assert {name: outcome["status"] for name, outcome in found.items()} == dict.fromkeys(INSTALLED, status)


def test_what_is_for_gpus_alone_is_not_called_on_the_cpu(packages: Path) -> None:
    path = {"PYTHONPATH": f"{STAND_IN}:{packages}"}
    found = drive("--devices", "cpu", "--checks", "extension-smoke:flash-attn+torch-scatter", variables=path)
    told = {check.partition(" ")[2]: outcome["reason"] for (check, _), outcome in found.items()}
    assert told == {"flash-attn": "flash-attn is called on GPUs alone", "torch-scatter": "seed 20250"}
