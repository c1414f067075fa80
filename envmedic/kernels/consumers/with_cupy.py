"""CuPy: its libraries open and compile; a raw kernel and a product by cuBLAS agree with 64 bits."""

from __future__ import annotations

from envmedic_kernels.consumers import common
from envmedic_kernels.harness.outcome import NotApplicable, Result, same, within
from envmedic_kernels.references import reference

SOURCE = """
extern "C" __global__ void scale(const float* numbers, float* out, float factor, int count) {
    int place = blockDim.x * blockIdx.x + threadIdx.x;
    if (place < count) { out[place] = factor * numbers[place] + 1.0f; }
}
"""
COUNT = 1000
LIBRARIES = ("nvrtc", "cublas", "cufft", "curand", "cusparse", "cusolver")


def libraries(_context):
    """Every library that it is linked with opens, and NVRTC compiles, for which no GPU is needed."""
    common.needs("cupy")
    import cupy

    if cupy.cuda.runtime.is_hip:
        raise NotApplicable("this CuPy is for AMD's GPUs")
    for name in LIBRARIES:
        # as attributes: their modules open the wheels of the toolkit before they are imported
        getattr(cupy.cuda, name)
    same("name of the kernel in what NVRTC compiled", b"scale" in _compiled(cupy.cuda.nvrtc), True)
    return Result("cupy %s" % cupy.__version__)


def _compiled(nvrtc):
    """What NVRTC makes of the kernel; the function by which CuPy does it asks the driver first."""
    program = nvrtc.createProgram(SOURCE, "scale.cu", (), ())
    try:
        nvrtc.compileProgram(program, ("-arch=compute_80",))
        text = nvrtc.getPTX(program)
    finally:
        nvrtc.destroyProgram(program)
    return text if isinstance(text, bytes) else text.encode()


def compute(context):
    """A raw kernel that NVRTC compiles, and a product by cuBLAS."""
    common.needs("cupy")
    if not context.on_gpu:
        raise NotApplicable("CuPy computes on GPUs alone")
    common.alone(context)
    import cupy

    kernel = cupy.RawKernel(SOURCE, "scale")
    worst = 0.0
    for seed in context.seeds():
        product = common.Product(seed)
        numbers = product.left[0] * (COUNT // common.SIZE + 1)
        placed = cupy.array(numbers[:COUNT], dtype=cupy.float32)
        out = cupy.empty_like(placed)
        kernel((COUNT // 256 + 1,), (256,), (placed, out, cupy.float32(3), cupy.int32(COUNT)))
        wanted = [3.0 * number + 1.0 for number in numbers[:COUNT]]
        worst = max(worst, within("a raw kernel", reference.largest_error(out.tolist(), wanted, 4.0), common.SINGLE))
        left, right = (cupy.array(item, dtype=cupy.float32) for item in (product.left, product.right))
        worst = max(worst, product.near("a product by cuBLAS", (left @ right).tolist(), common.TF32))
    return Result("cupy %s, seed %d" % (cupy.__version__, context.seed), worst, common.TF32)
