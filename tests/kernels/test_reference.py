"""The references are themselves checked: against definitions, and for the power to tell wrong from right."""

from __future__ import annotations

import ast
import importlib.util
import math
import random
import sys
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kernels.driving import KERNELS


def _load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"kernel_{name}", KERNELS / "references" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


reference: Any = _load("reference")


@pytest.mark.parametrize("path", sorted(KERNELS.rglob("*.py")), ids=lambda path: path.name)
def test_the_kernels_are_python_3_7_with_the_standard_library_and_torch_alone(path: Any) -> None:
    tree = ast.parse(path.read_text(), feature_version=(3, 7))
    roots = {
        alias.name.partition(".")[0] for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names
    }
    roots |= {
        (node.module or "").partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and not node.level
    }
    # a kernel of Triton's is compiled from the source of its module, which the check imports where there is Triton
    triton = {"triton"} if path.name == "triton_program.py" else set()
    # a gate of another consumer runs in a process of its own, where that consumer is
    consumer = {path.stem.removeprefix("with_"), "numpy"} if path.name.startswith("with_") else set()
    own = {"torch", "torchvision", "envmedic_kernels"}
    assert roots <= set(sys.stdlib_module_names) | own | triton | consumer


@given(st.integers(0, 10**6), st.integers(0, 40), st.sampled_from([0.3, 0.5, 0.7]))
def test_nms_keeps_a_maximal_set_of_boxes_that_no_better_kept_box_covers(
    seed: int, count: int, threshold: float
) -> None:
    boxes, scores = reference.boxes_and_scores(seed, count, threshold)
    kept = reference.nms(boxes, scores, threshold)
    assert [scores[index] for index in kept] == sorted((scores[index] for index in kept), reverse=True)
    for index in range(count):
        better = [other for other in kept if scores[other] > scores[index]]
        covered = any(reference.overlap(boxes[index], boxes[other]) > threshold for other in better)
        assert covered == (index not in kept)


@pytest.mark.parametrize("threshold", [0.3, 0.7])
@pytest.mark.parametrize("count", [7, 63, 64, 65, 500])
def test_the_boxes_of_a_check_ask_for_keeping_and_for_striking_out(count: int, threshold: float) -> None:
    boxes, scores = reference.boxes_and_scores(20250 + count, count, threshold)
    kept = reference.nms(boxes, scores, threshold)
    assert 1 < len(kept) < count
    assert kept != sorted(kept)
    assert len(set(scores)) == count
    pairs = [(one, two) for one in boxes[:40] for two in boxes[:40] if one is not two]
    assert all(abs(reference.overlap(one, two) - threshold) > 1e-4 for one, two in pairs)


def test_overlap_is_intersection_over_union() -> None:
    assert reference.overlap((0, 0, 2, 2), (1, 1, 3, 3)) == pytest.approx(1 / 7)
    assert reference.overlap((0, 0, 1, 1), (1, 0, 2, 1)) == 0
    assert reference.overlap((0, 0, 4, 4), (0, 0, 4, 4)) == 1


@given(st.integers(0, 10**6), st.booleans())
def test_roi_align_averages_and_its_gradient_is_its_transpose(seed: int, aligned: bool) -> None:  # noqa: FBT001
    rows = reference.regions(seed, 3, 2, 9, 0.5)
    cells = [reference.roi_weights(row, 9, 0.5, 3, 2, aligned) for row in rows]
    generator = random.Random(seed)
    features, upstream = reference.uniform(generator, 2, 2, 9, 9), reference.uniform(generator, 3, 2, 3, 3)
    output = reference.roi_align(features, rows, cells, 3)
    gradient = reference.roi_align_gradient((2, 2, 9, 9), rows, cells, upstream)

    def dot(one: Any, two: Any) -> float:
        return math.fsum(a * b for a, b in zip(reference.flat(one), reference.flat(two), strict=True))

    assert dot(output, upstream) == pytest.approx(dot(features, gradient), abs=1e-9)
    for cell in (cell for region in cells for cell in region):
        total = sum(weight for _, _, weight in cell)
        assert total == pytest.approx(1) or total < 1  # less where samples fall beyond the border
        assert all(weight >= 0 for _, _, weight in cell)


def test_roi_align_of_a_ramp_is_the_position_of_its_cells() -> None:
    ramp = [[[[float(column) for column in range(16)] for _ in range(16)]]]
    cells = [reference.roi_weights([0.0, 4.0, 4.0, 16.0, 16.0], 16, 0.5, 3, 2, True)]
    output = reference.roi_align(ramp, [[0.0, 4.0, 4.0, 16.0, 16.0]], cells, 3)
    assert output[0][0][0] == pytest.approx([2.5, 4.5, 6.5])


def test_single_elements_agree_with_the_definitions() -> None:
    assert reference.product_element([[1.0, 2.0]], [[3.0], [4.0]], 0, 0) == 11.0
    plane = [[1.0, 2.0], [3.0, 4.0]]
    kernel = [[1.0, 10.0, 0.0], [0.0, 100.0, 1000.0], [0.0, 0.0, 7.0]]
    assert reference.convolution_element([[plane]], [[kernel]], [0.5], 1, 1, (0, 0, 0, 0)) == 100 + 2000 + 28 + 0.5


@pytest.mark.parametrize(
    ("got", "expected", "scale", "error"),
    [
        ([1.0, 2.0], [1.0, 2.0], 1.0, 0.0),
        ([1.0, 2.5], [1.0, 2.0], 2.0, 0.25),
        ([[1.0], [2.5]], [[1.0], [2.0]], [[1.0], [5.0]], 0.1),
        ([0.5, 0.0], [0.0, 0.0], [0.0, 0.0], math.inf),
        ([math.nan], [1.0], 1.0, math.inf),
        ([math.inf], [1.0], 1.0, math.inf),
        ([1.0], [1.0, 2.0], 1.0, math.inf),
        ([], [], [], 0.0),
    ],
)
def test_largest_error(got: Any, expected: Any, scale: Any, error: float) -> None:
    assert reference.largest_error(got, expected, scale) == error
