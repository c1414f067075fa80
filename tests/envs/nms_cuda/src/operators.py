# ruff: noqa: ANN001, ANN002, ARG001, B905, PLR0917
"""The code of torchvision's operator library; the builder puts a header before it (see `miniature.py`)."""

import math

from torch._tensor import Tensor, int64


def cuda_nms(dets, scores, iou_threshold):
    """The kernel for GPUs, which this miniature never has."""
    raise RuntimeError("dets must be a CUDA tensor")


def cuda_roi_align(features, rois, *geometry):
    """The kernel for GPUs, which this miniature never has."""
    raise RuntimeError("input must be a CUDA tensor")


def cpu_nms(dets, scores, iou_threshold):
    """Greedy non-maximum suppression."""
    boxes = [tuple(dets.data[start : start + 4]) for start in range(0, len(dets.data), 4)]
    kept = []
    for index in sorted(range(len(boxes)), key=lambda place: -scores.data[place]):
        if all(_overlap(boxes[index], boxes[other]) <= iou_threshold for other in kept):
            kept.append(index)
    return Tensor(kept, (len(kept),), int64)


def _area(box):
    return (box[2] - box[0]) * (box[3] - box[1])


def _overlap(one, other):
    width = max(0.0, min(one[2], other[2]) - max(one[0], other[0]))
    height = max(0.0, min(one[3], other[3]) - max(one[1], other[1]))
    shared = width * height
    return shared / (_area(one) + _area(other) - shared) if shared else 0.0


def cpu_roi_align(features, rois, scale, rows, columns, sampling, aligned):
    """Averages of bilinear samples."""
    taps = list(_taps(features.shape, rois, scale, (rows, columns), sampling, aligned))
    values = [sum(weight * features.data[pixel] for pixel, weight in tap) for tap in taps]
    return Tensor(values, (rois.shape[0], features.shape[1], rows, columns), features.dtype)


def autograd_roi_align(features, rois, scale, rows, columns, sampling, aligned):
    """The same, with the gradient of the features."""
    taps = list(_taps(features.shape, rois, scale, (rows, columns), sampling, aligned))
    plain = cpu_roi_align(features, rois, scale, rows, columns, sampling, aligned)

    def to_features(grad):
        gradient = [0.0] * len(features.data)
        for value, tap in zip(grad, taps):
            for pixel, weight in tap:
                gradient[pixel] += value * weight
        return gradient

    return Tensor(plain.data, plain.shape, plain.dtype, [(features, to_features)])


def _taps(shape, rois, scale, cells, sampling, aligned):
    """For every element of the result the pixels, as flat offsets, with their weights."""
    _, channels, height, width = shape
    for start in range(0, len(rois.data), 5):
        image, *corners = rois.data[start : start + 5]
        left, top, right, bottom = (corner * scale - (0.5 if aligned else 0.0) for corner in corners)
        size = (bottom - top, right - left)
        size = size if aligned else tuple(max(length, 1.0) for length in size)
        axes = [
            [_samples(origin, length / count, place, sampling, limit) for place in range(count)]
            for origin, length, count, limit in zip((top, left), size, cells, (height, width))
        ]
        for channel in range(channels):
            plane = (int(image) * channels + channel) * height * width
            for ys in axes[0]:
                for xs in axes[1]:
                    yield [
                        (plane + y * width + x, v * h / (len(ys) * len(xs)))
                        for row in ys
                        for column in xs
                        for y, v in row
                        for x, h in column
                    ]


def _samples(origin, cell, place, sampling, limit):
    """The sample points of one cell along one axis, each as (pixel, weight) pairs; none beyond the border."""
    count = sampling if sampling > 0 else math.ceil(cell)
    positions = (origin + cell * (place + (index + 0.5) / count) for index in range(count))
    return [_neighbours(position, limit) for position in positions]


def _neighbours(position, limit):
    if position < -1.0 or position > limit:
        return []
    position = max(position, 0.0)
    low = min(int(position), limit - 1)
    if low == limit - 1:
        return [(low, 1.0)]
    return [(low, 1.0 - (position - low)), (low + 1, position - low)]
