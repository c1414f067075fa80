"""ONNX Runtime: a session on the provider that is asked for, which is asserted, agrees with 64 bits."""

from __future__ import annotations

from envmedic_kernels.consumers import common, onnx_model
from envmedic_kernels.harness.outcome import NotApplicable, Result, same

IMAGE = 16
CUDA = "CUDAExecutionProvider"
GPU_BUILD = "onnxruntime-gpu"


def provider(_context):
    """The build for the GPU offers its provider: another one has not been installed over it."""
    common.needs("onnxruntime")
    version = _installed(GPU_BUILD)
    if version is None:
        raise NotApplicable("%s is not installed" % GPU_BUILD)
    import onnxruntime

    offered = onnxruntime.get_available_providers()
    same("%s among the providers %s" % (CUDA, offered), CUDA in offered, True)
    same("release of the module onnxruntime", onnxruntime.__version__, version)
    return Result("onnxruntime %s" % onnxruntime.__version__)


def _installed(name):
    try:
        from importlib.metadata import PackageNotFoundError, version
    except ImportError:  # Python 3.7
        return None
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def compute(context):
    """A session with one product and one convolution."""
    common.needs("onnxruntime")
    common.alone(context)
    import numpy as np
    import onnxruntime

    if context.on_gpu:
        # it opens the libraries of NVIDIA's wheels; without it the loader alone looks, in LD_LIBRARY_PATH
        getattr(onnxruntime, "preload_dlls", lambda: None)()
    wanted = CUDA if context.on_gpu else "CPUExecutionProvider"
    session = onnxruntime.InferenceSession(onnx_model.product_and_convolution(common.SIZE, IMAGE), providers=[wanted])
    # it falls back to the CPU with no more than a warning
    same("first provider of the session", session.get_providers()[0], wanted)
    tolerance = common.TF32 if context.on_gpu else common.SINGLE
    worst = 0.0
    for seed in context.seeds():
        product, convolution = common.Product(seed), common.SmallConvolution(seed, IMAGE)
        inputs = {
            "left": product.left,
            "right": product.right,
            "image": [[convolution.image]],
            "kernel": [[convolution.kernel]],
        }
        placed = {name: np.array(value, dtype="float32") for name, value in inputs.items()}
        multiplied, moved = session.run(None, placed)
        worst = max(worst, product.near("a product by %s" % wanted, multiplied.tolist(), tolerance))
        worst = max(worst, convolution.near("a convolution by %s" % wanted, moved[0][0].tolist(), tolerance))
    return Result("onnxruntime %s, seed %d" % (onnxruntime.__version__, context.seed), worst, tolerance)
