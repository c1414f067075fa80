// torchvision's operators as torch knows them: their schemas, and the gradient of roi_align.
#include <torch/autograd.h>
#include <torch/library.h>

#ifdef WITH_CUDA
#include <cuda.h>
#endif

#include "operators.h"

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

template <typename Signature>
c10::TypedOperatorHandle<Signature> operator_of(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Signature>();
}

at::Tensor forward(const at::Tensor& input, const at::Tensor& rois, double scale, c10::SymInt height, c10::SymInt width,
                   int64_t sampling, bool aligned) {
  at::AutoDispatchBelowADInplaceOrView guard;
  static const auto call =
      operator_of<at::Tensor(const at::Tensor&, const at::Tensor&, double, c10::SymInt, c10::SymInt, int64_t, bool)>(
          "torchvision::roi_align");
  return call.call(input, rois, scale, std::move(height), std::move(width), sampling, aligned);
}

struct RoiAlign : torch::autograd::Function<RoiAlign> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input, const at::Tensor& rois, double scale,
                            const c10::SymInt& height, const c10::SymInt& width, int64_t sampling, bool aligned) {
    context->save_for_backward({rois});
    context->saved_data["scale"] = scale;
    context->saved_data["height"] = height;
    context->saved_data["width"] = width;
    context->saved_data["sampling"] = sampling;
    context->saved_data["aligned"] = aligned;
    for (int64_t axis = 0; axis < 4; ++axis) {
      context->saved_data["axis" + std::to_string(axis)] = input.sym_size(axis);
    }
    return ::forward(input, rois, scale, height, width, sampling, aligned);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    static const auto call = operator_of<at::Tensor(
        const at::Tensor&, const at::Tensor&, double, c10::SymInt, c10::SymInt, c10::SymInt, c10::SymInt, c10::SymInt,
        c10::SymInt, int64_t, bool)>("torchvision::_roi_align_backward");
    auto& kept = context->saved_data;
    auto found = call.call(
        gradients[0], context->get_saved_variables()[0], kept["scale"].toDouble(), kept["height"].toSymInt(),
        kept["width"].toSymInt(), kept["axis0"].toSymInt(), kept["axis1"].toSymInt(), kept["axis2"].toSymInt(),
        kept["axis3"].toSymInt(), kept["sampling"].toInt(), kept["aligned"].toBool());
    return {found, at::Tensor(), at::Tensor(), at::Tensor(), at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

at::Tensor roi_align_autograd(const at::Tensor& input, const at::Tensor& rois, double scale, c10::SymInt height,
                              c10::SymInt width, int64_t sampling, bool aligned) {
  return RoiAlign::apply(input, rois, scale, height, width, sampling, aligned);
}

int64_t cuda_version() {
#ifdef WITH_CUDA
  return CUDA_VERSION;
#else
  return -1;
#endif
}

}  // namespace

TORCH_LIBRARY(torchvision, m) {
#include "schemas.inc"
}

TORCH_LIBRARY_IMPL(torchvision, CatchAll, m) { m.impl("_cuda_version", &cuda_version); }

TORCH_LIBRARY_IMPL(torchvision, Autograd, m) { m.impl("roi_align", &roi_align_autograd); }
