# ruff: noqa: ANN001, ANN204
"""Convolution in two dimensions, with its gradients."""

from torch._tensor import Tensor


def conv2d(x, weight, bias, stride=1, padding=0):
    """Cross-correlation of images with kernels, summed in double precision."""
    geometry = _Geometry(x.shape, weight.shape, stride, padding)
    result = [bias.data[output] for output in geometry.outputs_in_order()]
    for target, pixel, factor in geometry.terms():
        result[target] += x.data[pixel] * weight.data[factor]

    def to_x(grad):
        gradient = [0.0] * len(x.data)
        for target, pixel, factor in geometry.terms():
            gradient[pixel] += grad[target] * weight.data[factor]
        return gradient

    def to_weight(grad):
        gradient = [0.0] * len(weight.data)
        for target, pixel, factor in geometry.terms():
            gradient[factor] += grad[target] * x.data[pixel]
        return gradient

    return Tensor(result, geometry.shape, x.dtype, [(x, to_x), (weight, to_weight)])


class _Geometry:
    """Which pixel meets which weight for which element of the result, as offsets into flat arrays."""

    def __init__(self, images, kernels, stride, padding):
        self.images, self.kernels, self.stride, self.padding = images, kernels, stride, padding
        height, width = ((images[axis] + 2 * padding - kernels[axis]) // stride + 1 for axis in (2, 3))
        self.shape = (images[0], kernels[0], height, width)

    def outputs_in_order(self):
        """Output channel of each element of the result."""
        count, outputs, height, width = self.shape
        return [output for _ in range(count) for output in range(outputs) for _ in range(height * width)]

    def terms(self):
        """(element of the result, pixel, weight) of every product."""
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
                for y, row in self._meet(i, rows, height):
                    for x, column in self._meet(j, columns, width):
                        yield target + y * width + x, pixels + row * columns + column, factor

    def _meet(self, offset, length, results):
        """(result, pixel) pairs along one axis for one place of the kernel."""
        pairs = ((place, place * self.stride + offset - self.padding) for place in range(results))
        return [(place, pixel) for place, pixel in pairs if 0 <= pixel < length]
