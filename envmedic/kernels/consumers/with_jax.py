"""JAX: its CUDA plugin opens its libraries; a compiled product, a convolution and a transform agree with 64 bits."""

from __future__ import annotations

import importlib
import os
import re

from envmedic_kernels.consumers import common
from envmedic_kernels.harness.outcome import Disagreement, NotApplicable, Result, same, within
from envmedic_kernels.references import exact, reference

PLUGINS = ("jax_cuda13_plugin", "jax_cuda12_plugin")
# (name, digits below the minor release): cuDNN must not be older than the one that the plugin was built with
LIBRARIES = (("cudnn", 100), ("cublas", None), ("cufft", None), ("cusparse", None), ("cuda_runtime", None))


def compute(context):
    """What is compiled for the device, run on it."""
    common.needs("jax")
    common.alone(context)
    platform = "gpu" if context.on_gpu else "cpu"
    os.environ["JAX_PLATFORMS"] = "cuda" if context.on_gpu else "cpu"
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    import jax
    import jax.numpy as jnp

    # without this JAX goes on, on the CPU, where its plugin does not start
    device = jax.devices(platform)[0]
    tolerance = common.TF32 if context.on_gpu else common.SINGLE
    worst = 0.0
    for seed in context.seeds():
        product, convolution = common.Product(seed), common.SmallConvolution(seed)
        left, right, image, kernel = (
            jax.device_put(jnp.asarray(item, dtype="float32"), device)
            for item in (product.left, product.right, [[convolution.image]], [[convolution.kernel]])
        )
        multiplied = jax.jit(lambda a, b: a @ b)(left, right)
        same("device of a product", {item.platform for item in multiplied.devices()}, {device.platform})
        worst = max(worst, product.near("a product by jax.jit", multiplied.tolist(), tolerance))
        moved = jax.jit(lambda a, b: jax.lax.conv(a, b, (1, 1), "VALID"))(image, kernel)
        worst = max(worst, convolution.near("a convolution", moved.tolist()[0][0], tolerance))
        worst = max(worst, _transform(jax, jnp, left[0], product.left[0]))
    return Result("jax %s, seed %d" % (jax.__version__, context.seed), worst, tolerance)


def _transform(jax, jnp, placed, numbers):
    got = jax.jit(jnp.fft.fft)(placed).tolist()
    wanted = exact.fourier(numbers)
    pairs = [[item.real, item.imag] for item in got], [[item.real, item.imag] for item in wanted]
    scale = max(abs(item) for item in wanted)
    return within("a transform", reference.largest_error(*pairs, scale), common.SINGLE)


def plugin(_context):
    """The CUDA plugin is of jaxlib's release, and finds libraries no older than those that it was built with."""
    common.needs("jaxlib")
    found = [name for name in PLUGINS if importlib.util.find_spec(name)]
    if not found:
        raise NotApplicable("this JAX has no CUDA plugin")
    same("number of CUDA plugins (%s)" % ", ".join(found), len(found), 1)
    core = importlib.import_module("jaxlib.version").__version__
    version = importlib.import_module(found[0] + ".version").__version__
    same("release of %s beside jaxlib %s" % (found[0], core), _release(version), _release(core))
    # opens the wheels' libraries by their paths, as the plugin does before it starts
    loader = importlib.import_module("jax_plugins.xla_" + found[0].split("_")[1])
    getattr(loader, "_load_nvidia_libraries", lambda: None)()
    versions = importlib.import_module(found[0] + "._versions")
    for name, below in LIBRARIES:
        built, here = _asked(versions, name, "build_version"), _asked(versions, name, "get_version")
        if built is None or here is None:
            continue
        if here == 0 or (below and here // below < built // below):
            raise Disagreement("%s %d is there, %s was built with %d" % (name, here, found[0], built))
    return Result("%s %s" % (found[0], version))


def _asked(versions, name, what):
    """What the plugin says of one library; an error of the library itself is raised."""
    function = getattr(versions, "%s_%s" % (name, what), None)
    return int(function()) if function else None


def _release(version):
    return re.match(r"[\d.]*\d", version).group()
