# ruff: noqa: ANN001
"""Operators on boxes."""

import torch

from torchvision.extension import _assert_has_ops


def nms(boxes, scores, iou_threshold):
    """Indices of the boxes that non-maximum suppression keeps, best score first."""
    _assert_has_ops()
    return torch.ops.torchvision.nms(boxes, scores, iou_threshold)
