// nms and roi_align for GPUs.
#include <ATen/Dispatch.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/library.h>

#include "../operators.h"

namespace {

constexpr int kThreads = 256;

unsigned blocks(int64_t elements) { return static_cast<unsigned>((elements + kThreads - 1) / kThreads); }

// Which of the boxes, the best first, overlap with which better ones: a matrix of (boxes, boxes).
template <typename T>
__global__ void overlapping(const T* boxes, int64_t count, double threshold, bool* found) {
  const int64_t element = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (element >= count * count) return;
  const int64_t box = element / count, better = element % count;
  found[element] = better < box && replay::overlap(boxes + 4 * box, boxes + 4 * better, threshold);
}

// One block goes through the boxes, the best first; its threads share the question of what overlaps with each.
__global__ void suppress(const bool* overlaps, int64_t count, bool* kept) {
  for (int64_t box = 0; box < count; ++box) {
    int hit = 0;
    for (int64_t better = threadIdx.x; better < box; better += blockDim.x) {
      hit |= overlaps[box * count + better] && kept[better];
    }
    hit = __syncthreads_or(hit);
    if (threadIdx.x == 0) kept[box] = !hit;
    __syncthreads();
  }
}

template <typename T>
__global__ void align(const T* values, const T* regions, replay::Maps maps, int64_t count, T* out) {
  const int64_t element = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (element >= count) return;
  const auto cell = replay::cell(regions, element, maps);
  const T* map = values + cell.map * maps.height * maps.width;
  T sum = 0;
  replay::each_pixel(cell, maps, [&](int64_t place, T weight) { sum += weight * map[place]; });
  out[element] = sum;
}

template <typename T>
__global__ void spread(const T* upstream, const T* regions, replay::Maps maps, int64_t count, T* out) {
  const int64_t element = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (element >= count) return;
  const auto cell = replay::cell(regions, element, maps);
  T* map = out + cell.map * maps.height * maps.width;
  const T value = upstream[element];
  replay::each_pixel(cell, maps, [&](int64_t place, T weight) { atomicAdd(map + place, weight * value); });
}

at::Tensor nms(const at::Tensor& dets, const at::Tensor& scores, double threshold) {
  replay::require_boxes(dets, scores);
  const c10::cuda::CUDAGuard guard(dets.device());
  const auto stream = c10::cuda::getCurrentCUDAStream();
  const auto order = std::get<1>(scores.sort(/*stable=*/true, /*dim=*/0, /*descending=*/true));
  const int64_t count = dets.size(0);
  if (count == 0) return order;
  const auto boxes = dets.index_select(0, order).contiguous();
  const auto overlaps = at::empty({count, count}, dets.options().dtype(at::kBool));
  const auto kept = at::empty({count}, dets.options().dtype(at::kBool));
  AT_DISPATCH_FLOATING_TYPES(boxes.scalar_type(), "nms", [&] {
    overlapping<<<blocks(count * count), kThreads, 0, stream>>>(
        boxes.data_ptr<scalar_t>(), count, threshold, overlaps.data_ptr<bool>());
  });
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  suppress<<<1, kThreads, 0, stream>>>(overlaps.data_ptr<bool>(), count, kept.data_ptr<bool>());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return order.masked_select(kept);
}

at::Tensor roi_align(const at::Tensor& input, const at::Tensor& rois, double scale, int64_t height, int64_t width,
                     int64_t sampling, bool aligned) {
  replay::require_regions(input, rois);
  const c10::cuda::CUDAGuard guard(input.device());
  const auto maps = replay::maps_of(input.sizes(), scale, height, width, sampling, aligned);
  const auto values = input.contiguous(), regions = rois.contiguous();
  auto out = at::empty({rois.size(0), maps.channels, height, width}, input.options());
  if (out.numel() == 0) return out;
  AT_DISPATCH_FLOATING_TYPES(input.scalar_type(), "roi_align", [&] {
    align<<<blocks(out.numel()), kThreads, 0, c10::cuda::getCurrentCUDAStream()>>>(
        values.data_ptr<scalar_t>(), regions.data_ptr<scalar_t>(), maps, out.numel(), out.data_ptr<scalar_t>());
  });
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

at::Tensor roi_align_backward(const at::Tensor& grad, const at::Tensor& rois, double scale, int64_t pooled_height,
                              int64_t pooled_width, int64_t images, int64_t channels, int64_t height, int64_t width,
                              int64_t sampling, bool aligned) {
  replay::require_regions(grad, rois);
  const c10::cuda::CUDAGuard guard(grad.device());
  const auto maps =
      replay::maps_of({images, channels, height, width}, scale, pooled_height, pooled_width, sampling, aligned);
  const auto upstream = grad.contiguous(), regions = rois.contiguous();
  auto out = at::zeros({images, channels, height, width}, grad.options());
  if (upstream.numel() == 0) return out;
  AT_DISPATCH_FLOATING_TYPES(grad.scalar_type(), "roi_align_backward", [&] {
    spread<<<blocks(upstream.numel()), kThreads, 0, c10::cuda::getCurrentCUDAStream()>>>(
        upstream.data_ptr<scalar_t>(), regions.data_ptr<scalar_t>(), maps, upstream.numel(), out.data_ptr<scalar_t>());
  });
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

}  // namespace

TORCH_LIBRARY_IMPL(torchvision, CUDA, m) {
  m.impl("nms", &nms);
  m.impl("roi_align", &roi_align);
  m.impl("_roi_align_backward", &roi_align_backward);
}
