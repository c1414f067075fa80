"""TensorFlow: a product and a convolution on the device that is asked for agree with 64 bits."""

from __future__ import annotations

import os

from envmedic_kernels.consumers import common
from envmedic_kernels.harness.outcome import Disagreement, Result, same


def compute(context):
    """A compiled product and a convolution. TensorFlow goes on without a GPU that it cannot use: that is a failure."""
    common.needs("tensorflow")
    common.alone(context)
    os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")
    import tensorflow as tf

    if context.on_gpu and not tf.config.list_physical_devices("GPU"):
        raise Disagreement("TensorFlow registers no GPU; what it prints says which library it did not open")
    place = "/GPU:0" if context.on_gpu else "/CPU:0"
    tolerance = common.TF32 if context.on_gpu else common.SINGLE
    worst = 0.0
    for seed in context.seeds():
        product, convolution = common.Product(seed), common.SmallConvolution(seed)
        with tf.device(place):
            left, right, image, kernel = (
                tf.constant(item, dtype=tf.float32)
                for item in (product.left, product.right, convolution.channels_last, convolution.filters_last)
            )
            multiplied = tf.function(tf.linalg.matmul)(left, right)
            moved = tf.nn.conv2d(image, kernel, 1, "VALID")
        same("device of a product", place[1:4] in multiplied.device, True)
        worst = max(worst, product.near("a product", multiplied.numpy().tolist(), tolerance))
        worst = max(worst, convolution.near("a convolution", moved.numpy().tolist()[0], tolerance))
    return Result("tensorflow %s, seed %d" % (tf.__version__, context.seed), worst, tolerance)
