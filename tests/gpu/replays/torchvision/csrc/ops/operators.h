// The kernels that are written for CPUs and, in the other source, for GPUs.
#pragma once

#include <ATen/ATen.h>

#include "regions.h"

namespace replay {

inline Maps maps_of(
    at::IntArrayRef shape, double scale, int64_t pooled_height, int64_t pooled_width, int64_t sampling, bool aligned) {
  return {shape[0], shape[1], shape[2], shape[3], pooled_height, pooled_width, sampling, scale, aligned};
}

inline void require_regions(const at::Tensor& input, const at::Tensor& regions) {
  TORCH_CHECK(regions.dim() == 2 && regions.size(1) == 5, "rois must have shape as Tensor[K, 5]");
  TORCH_CHECK(input.device() == regions.device(), "input and rois must be on one device");
  TORCH_CHECK(input.scalar_type() == regions.scalar_type(), "input and rois must have one dtype");
}

inline void require_boxes(const at::Tensor& boxes, const at::Tensor& scores) {
  TORCH_CHECK(boxes.dim() == 2 && boxes.size(1) == 4, "boxes should be a 2d tensor of 4 columns");
  TORCH_CHECK(scores.dim() == 1 && scores.size(0) == boxes.size(0), "there should be one score for each box");
  TORCH_CHECK(boxes.device() == scores.device(), "boxes and scores must be on one device");
}

}  // namespace replay
