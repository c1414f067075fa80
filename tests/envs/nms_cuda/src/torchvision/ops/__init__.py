"""The operators as functions."""

from torchvision.ops.boxes import nms
from torchvision.ops.roi_align import roi_align

__all__ = ["nms", "roi_align"]
