# ruff: noqa: ANN001, ANN204, B905
"""Convolution in two dimensions, with its gradients."""

import operator

from torch._tensor import Tensor


def conv2d(x, weight, bias, stride=1, padding=0):
    """Cross-correlation of images with kernels, summed in double precision."""
    geometry = _Geometry(x.shape, weight.shape, stride, padding)
    result = [bias.data[output] for output in geometry.outputs_in_order()]
    for target, pixels, factor in geometry.terms():
        by = weight.data[factor]
        result[target] = [known + pixel * by for known, pixel in zip(result[target], x.data[pixels])]

    def to_x(grad):
        gradient = [0.0] * len(x.data)
        for target, pixels, factor in geometry.terms():
            by = weight.data[factor]
            gradient[pixels] = [known + part * by for known, part in zip(gradient[pixels], grad[target])]
        return gradient

    def to_weight(grad):
        gradient = [0.0] * len(weight.data)
        for target, pixels, factor in geometry.terms():
            gradient[factor] = sum(map(operator.mul, grad[target], x.data[pixels]), gradient[factor])
        return gradient

    return Tensor(result, geometry.shape, x.dtype, [(x, to_x), (weight, to_weight)])


class _Geometry:
    """Which pixels meet which weight for which row of the result, as slices of flat arrays and an offset."""

    def __init__(self, images, kernels, stride, padding):
        self.images, self.kernels, self.stride, self.padding = images, kernels, stride, padding
        height, width = ((images[axis] + 2 * padding - kernels[axis]) // stride + 1 for axis in (2, 3))
        self.shape = (images[0], kernels[0], height, width)

    def outputs_in_order(self):
        """Output channel of each element of the result."""
        count, outputs, height, width = self.shape
        return [output for _ in range(count) for output in range(outputs) for _ in range(height * width)]

    def terms(self):
        """(elements of the result, as many pixels, weight) of every product of a weight with a row."""
        count, outputs, _, _ = self.shape
        for image in range(count):
            for output in range(outputs):
                for channel in range(self.images[1]):
                    yield from self._plane(image, output, channel)

    def _plane(self, image, output, channel):
        _, channels, rows, columns = self.images
        _, outputs, height, width = self.shape
        target = (image * outputs + output) * height * width
        pixels = (image * channels + channel) * rows * columns
        weights = (output * channels + channel) * self.kernels[2] * self.kernels[3]
        for i in range(self.kernels[2]):
            for j in range(self.kernels[3]):
                factor = weights + i * self.kernels[3] + j
                across = self._meet(j, columns, width)
                if not across:
                    continue
                (first, pixel), count = across[0], len(across)
                for y, row in self._meet(i, rows, height):
                    start, source = target + y * width + first, pixels + row * columns + pixel
                    read = slice(source, source + (count - 1) * self.stride + 1, self.stride)
                    yield slice(start, start + count), read, factor

    def _meet(self, offset, length, results):
        """(result, pixel) pairs along one axis for one place of the kernel."""
        pairs = ((place, place * self.stride + offset - self.padding) for place in range(results))
        return [(place, pixel) for place, pixel in pairs if 0 <= pixel < length]
