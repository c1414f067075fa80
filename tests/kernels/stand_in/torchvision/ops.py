"""torchvision.ops, written independently of the checks' reference."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def _area(box: list[float]) -> float:
    return max(0.0, box[2] - box[0]) * max(0.0, box[3] - box[1])


def nms(boxes: Tensor, scores: Tensor, threshold: float) -> Tensor:
    """Greedy, by striking out what the best remaining box covers."""
    torch.misbehave("nms")
    rows = boxes.tolist()
    left = sorted(range(len(rows)), key=lambda index: scores.data[index], reverse=True)
    kept: list[float] = []
    while left:
        best, *rest = left
        kept.append(best)
        left = []
        for index in rest:
            one, two = rows[best], rows[index]
            shared = _area([max(one[0], two[0]), max(one[1], two[1]), min(one[2], two[2]), min(one[3], two[3])])
            if shared <= threshold * (_area(one) + _area(two) - shared):
                left.append(index)
    if torch.FAULT == "keeps all at nms":
        kept = sorted(range(len(rows)), key=lambda index: -scores.data[index])
    if torch.FAULT == "order at nms":
        kept.sort()
    if f"empty at nms on {boxes.where}" == torch.FAULT:
        kept = []
    device = "cpu" if torch.FAULT == "wrong device at nms" else boxes.where
    return Tensor(kept, (len(kept),), torch.int64, device)


def _axis(position: float, size: int) -> list[tuple[int, float]]:
    position = max(position, 0.0)
    low = min(math.floor(position), size - 1)
    if low == size - 1:
        return [(low, 1.0)]
    return [(low, low + 1 - position), (low + 1, position - low)]


def roi_align(  # noqa: C901, PLR0917
    x: Tensor,
    rois: Tensor,
    pooled: tuple[int, int],
    scale: float,
    sampling: int,
    aligned: bool,  # noqa: FBT001
) -> Tensor:
    """Average of bilinear samples, in order of the output."""
    torch.misbehave("roi_align")
    _, channels, side, _ = x.shape
    pairs: list[tuple[int, int, float]] = []
    position = 0
    for roi in rois.tolist():
        x1, y1, x2, y2 = (value * scale - (0.5 if aligned else 0.0) for value in roi[1:])
        width, height = (x2 - x1, y2 - y1) if aligned else (max(x2 - x1, 1.0), max(y2 - y1, 1.0))
        if torch.FAULT == "no offset at roi_align":
            x1, y1 = x1 + 0.5, y1 + 0.5
        step_x, step_y = width / pooled[1] / sampling, height / pooled[0] / sampling
        for channel in range(channels):
            base = (int(roi[0]) * channels + channel) * side * side
            for row in range(pooled[0]):
                for column in range(pooled[1]):
                    for i in range(sampling):
                        for j in range(sampling):
                            across = x1 + (column * sampling + j + 0.5) * step_x
                            down = y1 + (row * sampling + i + 0.5) * step_y
                            if not (-1 <= across <= side and -1 <= down <= side):
                                continue
                            pairs += [
                                (position, base + r * side + c, a * b / sampling**2)
                                for r, a in _axis(down, side)
                                for c, b in _axis(across, side)
                            ]
                    position += 1
    data = [0.0] * position
    for target, source, weight in pairs:
        data[target] += weight * x.data[source]

    def gradient(up: list[float]) -> list[float]:
        result = [0.0] * len(x.data)
        for target, source, weight in pairs:
            result[source] += weight * up[target]
        spoiled: list[float] = torch.spoiled(result, "roi_align gradient", x.where)
        return spoiled

    result = Tensor(
        torch.spoiled(data, "roi_align", x.where), (len(rois.data) // 5, channels, *pooled), x.dtype, x.where
    )
    result.parents = [(x, gradient)]
    return result
