# ruff: noqa: ANN001, FBT002, PLR0917
"""Region of interest align."""

import torch

from torchvision.extension import _assert_has_ops


def roi_align(input, boxes, output_size, spatial_scale=1.0, sampling_ratio=-1, aligned=False):  # noqa: A002  # its name
    """Bilinear samples of each region, averaged per cell of the output."""
    _assert_has_ops()
    height, width = output_size
    return torch.ops.torchvision.roi_align(input, boxes, spatial_scale, height, width, sampling_ratio, aligned)
