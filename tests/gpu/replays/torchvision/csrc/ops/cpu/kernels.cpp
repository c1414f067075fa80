// nms and roi_align for CPUs.
#include <torch/library.h>

#include <vector>

#include "../operators.h"

namespace {

at::Tensor nms(const at::Tensor& dets, const at::Tensor& scores, double threshold) {
  replay::require_boxes(dets, scores);
  const auto order = std::get<1>(scores.sort(/*stable=*/true, /*dim=*/0, /*descending=*/true)).contiguous();
  const auto boxes = dets.contiguous();
  std::vector<int64_t> kept;
  AT_DISPATCH_FLOATING_TYPES(boxes.scalar_type(), "nms", [&] {
    const auto* box = boxes.data_ptr<scalar_t>();
    for (int64_t place = 0; place < order.numel(); ++place) {
      const int64_t next = order.data_ptr<int64_t>()[place];
      bool alone = true;
      for (const int64_t better : kept) alone = alone && !replay::overlap(box + 4 * next, box + 4 * better, threshold);
      if (alone) kept.push_back(next);
    }
  });
  return at::tensor(kept, order.options());
}

at::Tensor roi_align(const at::Tensor& input, const at::Tensor& rois, double scale, int64_t height, int64_t width,
                     int64_t sampling, bool aligned) {
  replay::require_regions(input, rois);
  const auto maps = replay::maps_of(input.sizes(), scale, height, width, sampling, aligned);
  const auto values = input.contiguous(), regions = rois.contiguous();
  auto out = at::empty({rois.size(0), maps.channels, height, width}, input.options());
  AT_DISPATCH_FLOATING_TYPES(input.scalar_type(), "roi_align", [&] {
    for (int64_t element = 0; element < out.numel(); ++element) {
      const auto cell = replay::cell(regions.data_ptr<scalar_t>(), element, maps);
      const scalar_t* map = values.data_ptr<scalar_t>() + cell.map * maps.height * maps.width;
      scalar_t sum = 0;
      replay::each_pixel(cell, maps, [&](int64_t place, scalar_t weight) { sum += weight * map[place]; });
      out.data_ptr<scalar_t>()[element] = sum;
    }
  });
  return out;
}

at::Tensor roi_align_backward(const at::Tensor& grad, const at::Tensor& rois, double scale, int64_t pooled_height,
                              int64_t pooled_width, int64_t images, int64_t channels, int64_t height, int64_t width,
                              int64_t sampling, bool aligned) {
  replay::require_regions(grad, rois);
  const auto maps =
      replay::maps_of({images, channels, height, width}, scale, pooled_height, pooled_width, sampling, aligned);
  const auto upstream = grad.contiguous(), regions = rois.contiguous();
  auto out = at::zeros({images, channels, height, width}, grad.options());
  AT_DISPATCH_FLOATING_TYPES(grad.scalar_type(), "roi_align_backward", [&] {
    for (int64_t element = 0; element < upstream.numel(); ++element) {
      const auto cell = replay::cell(regions.data_ptr<scalar_t>(), element, maps);
      scalar_t* map = out.data_ptr<scalar_t>() + cell.map * height * width;
      const scalar_t value = upstream.data_ptr<scalar_t>()[element];
      replay::each_pixel(cell, maps, [&](int64_t place, scalar_t weight) { map[place] += weight * value; });
    }
  });
  return out;
}

}  // namespace

TORCH_LIBRARY_IMPL(torchvision, CPU, m) {
  m.impl("nms", &nms);
  m.impl("roi_align", &roi_align);
  m.impl("_roi_align_backward", &roi_align_backward);
}
