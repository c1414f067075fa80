# ruff: noqa: ANN001
"""What shape an operator's result has."""

import torch

import torchvision.extension  # noqa: F401  # its operators are registered first


@torch.library.register_fake("torchvision::nms")
def meta_nms(dets, scores, iou_threshold):
    """Its length depends on the numbers."""
    raise NotImplementedError("torchvision::nms has an output shape that depends on data")
