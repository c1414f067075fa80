"""What the checks of all consumers share: the GPUs by the driver alone, inputs, and the comparison with a reference."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import random

from envmedic_kernels.harness.outcome import Skipped, same, within
from envmedic_kernels.references import exact, reference

SINGLE = 256.0 * reference.UNIT_ROUNDOFF["fp32"]
"""Tolerance of a product in fp32: sums of 48 products, with room for another order of summation."""
TF32 = 64.0 * reference.UNIT_ROUNDOFF["tf32"]
"""The same where a GPU may round the factors to TF32, as libraries do by default."""
SIZE = 48


def by_driver():
    """Name of each GPU that the driver shows to a new process; raises OSError or RuntimeError where it shows none."""
    # libcuda alone: NVIDIA's other libraries, and what opens them, are what is under test
    driver = ctypes.CDLL("libcuda.so.1")
    status = driver.cuInit(0)
    if status:
        raise RuntimeError("cuInit ends with error %d" % status)
    count = ctypes.c_int()
    driver.cuDeviceGetCount(ctypes.byref(count))
    found = []
    for number in range(count.value):
        title = ctypes.create_string_buffer(256)
        driver.cuDeviceGetName(title, 256, number)
        found.append(title.value.decode("utf-8", "replace"))
    return found


def needs(module):
    """Raise `Skipped` unless a module is installed."""
    if importlib.util.find_spec(module) is None:
        raise Skipped("%s is not installed" % module)


def alone(context):
    """Leave this process the GPU of `context` and no other one; before anything that starts CUDA is imported."""
    visible = [part for part in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if part]
    if not context.on_gpu:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
        return
    number = int(context.device.partition(":")[2] or 0)
    os.environ["CUDA_VISIBLE_DEVICES"] = visible[number] if number < len(visible) else str(number)


class Product:
    """Two matrices, and their product in 64 bits."""

    def __init__(self, seed, size=SIZE):
        generator = random.Random(seed)
        self.left = reference.uniform(generator, size, size)
        self.right = reference.uniform(generator, size, size)
        self.wanted = exact.product(self.left, self.right)

    def near(self, what, got, tolerance):
        """The largest error of a result (nested lists), which must be within `tolerance`."""
        same("rows of %s" % what, len(got), len(self.wanted))
        return within(what, reference.largest_error(got, self.wanted, exact.largest(self.wanted)), tolerance)


class SmallConvolution:
    """One image of one channel, a kernel of 3 x 3, and their correlation without padding in 64 bits."""

    def __init__(self, seed, size=16):
        generator = random.Random(seed + 1)
        self.image = reference.uniform(generator, size, size)
        self.kernel = reference.uniform(generator, 3, 3)
        places = range(size - 2)
        self.wanted = [
            [
                sum(self.image[row + i][column + j] * self.kernel[i][j] for i in range(3) for j in range(3))
                for column in places
            ]
            for row in places
        ]

    @property
    def channels_last(self):
        """The image as (image, row, column, channel)."""
        return [[[[number] for number in row] for row in self.image]]

    @property
    def filters_last(self):
        """The kernel as (row, column, channel, filter)."""
        return [[[[number]] for number in row] for row in self.kernel]

    def near(self, what, got, tolerance):
        """The largest error of a result (nested lists), which must be within `tolerance`."""
        return within(what, reference.largest_error(got, self.wanted, exact.largest(self.wanted)), tolerance)
