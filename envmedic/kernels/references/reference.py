"""Reference results in 64 bits, in plain Python, with which the kernels under test must agree.

Nothing here uses torch, so that no fault of the environment can change both sides of a comparison.
Inputs come from `random.Random(seed)`: the same numbers on every torch, and the seed is reported.
"""

from __future__ import annotations

import math
import random

UNIT_ROUNDOFF = {"fp32": 2.0**-24, "tf32": 2.0**-11, "fp16": 2.0**-11, "bf16": 2.0**-8}
"""Largest relative error of rounding to nearest."""


DECISIVE = 1e-4
"""Distance from the threshold at which rounding to 32 bits cannot change whether an overlap exceeds it."""


def flat(nested):
    """All numbers of nested lists, in order."""
    if not isinstance(nested, list):
        return [nested]
    numbers = []
    for part in nested:
        if isinstance(part, list):
            numbers.extend(flat(part))
        else:
            numbers.append(part)
    return numbers


def uniform(generator, *shape):
    """Nested lists of `shape` with numbers in [-1, 1) that 16 bits of fraction hold exactly."""
    if len(shape) == 1:
        return [generator.randrange(-65536, 65536) / 65536.0 for _ in range(shape[0])]
    return [uniform(generator, *shape[1:]) for _ in range(shape[0])]


def largest_error(got, expected, scale):
    """Largest ``|got - expected| / scale`` over all elements; infinite for NaN, infinity or a wrong length.

    `scale` is one number, or as many as there are elements.
    """
    got, expected = flat(got), flat(expected)
    scales = flat(scale) if isinstance(scale, list) else [scale] * len(expected)
    if not len(got) == len(expected) == len(scales):
        return math.inf
    largest = 0.0
    for value, wanted, size in zip(got, expected, scales):
        difference = abs(value - wanted)
        # in this form, NaN is caught too: every comparison with it is false
        if not difference < math.inf:
            return math.inf
        if difference:
            largest = max(largest, difference / size if size else math.inf)
    return largest


def overlap(first, second):
    """Intersection over union of two boxes ``(x1, y1, x2, y2)``."""
    width = min(first[2], second[2]) - max(first[0], second[0])
    height = min(first[3], second[3]) - max(first[1], second[1])
    if width <= 0 or height <= 0:
        return 0.0
    shared = width * height
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (first, second)]
    return shared / (areas[0] + areas[1] - shared)


def boxes_and_scores(seed, count, threshold):
    """`count` clustered boxes and distinct scores, with no overlap so near `threshold` that rounding could decide.

    Coordinates are multiples of 1/8 below 1024, which 32 bits hold exactly.
    """
    generator = random.Random(seed)
    centres = [(generator.randrange(40, 900), generator.randrange(40, 900)) for _ in range(max(1, count // 4))]
    boxes = []
    while len(boxes) < count:
        x, y = generator.choice(centres)
        left, top = x + generator.randrange(-80, 80) / 8.0, y + generator.randrange(-80, 80) / 8.0
        box = (left, top, left + generator.randrange(120, 320) / 8.0, top + generator.randrange(120, 320) / 8.0)
        # torchvision computes overlaps in 32 bits: near the threshold it may rightly decide the other way
        if all(abs(overlap(box, other) - threshold) > DECISIVE for other in boxes):
            boxes.append(box)
    # distinct scores: the order of equal ones is undefined
    scores = [(rank + 1) / (count + 1.0) for rank in range(count)]
    generator.shuffle(scores)
    return boxes, scores


def nms(boxes, scores, threshold):
    """Indices that non-maximum suppression keeps, best score first."""
    kept = []
    for index in sorted(range(len(boxes)), key=lambda i: -scores[i]):
        if all(overlap(boxes[index], boxes[other]) <= threshold for other in kept):
            kept.append(index)
    return kept


CELL, OF_CELL = 64, 8
"""Side of the cells of `scattered_boxes`, and boxes in each."""


def scattered_boxes(seed, count, threshold, kinds=None):
    """Thousands of boxes in cells that do not touch, with scores, and what suppression keeps, best score first.

    Only boxes of a cell overlap, which makes the reference quick. With `kinds`, a number for each box, only boxes of
    one kind suppress each other. The same `seed` gives the same boxes.
    """
    generator = random.Random(seed)
    side = math.ceil(math.sqrt(count / OF_CELL))
    cells = [((number % side) * CELL, (number // side) * CELL) for number in range(-(-count // OF_CELL))]
    boxes = []
    for number in range(count):
        x, y = cells[number // OF_CELL]
        others = boxes[number - number % OF_CELL :]
        while True:
            left, top = x + generator.randrange(0, 160) / 8.0, y + generator.randrange(0, 160) / 8.0
            box = (left, top, left + generator.randrange(120, 320) / 8.0, top + generator.randrange(120, 320) / 8.0)
            # near the threshold, rounding to 32 bits may rightly decide the other way
            if all(abs(overlap(box, other) - threshold) > DECISIVE for other in others):
                break
        boxes.append(box)
    places = list(range(count))
    generator.shuffle(places)
    shuffled = [boxes[place] for place in places]
    scores = [(rank + 1) / (count + 1.0) for rank in range(count)]
    generator.shuffle(scores)
    of_cell = {}
    kept = []
    for index in sorted(range(count), key=lambda i: -scores[i]):
        key = (places[index] // OF_CELL, kinds[index] if kinds else 0)
        rivals = of_cell.setdefault(key, [])
        if all(overlap(shuffled[index], shuffled[other]) <= threshold for other in rivals):
            rivals.append(index)
            kept.append(index)
    return [list(box) for box in shuffled], scores, kept


def regions(seed, count, images, size, scale):
    """`count` regions ``[image, x1, y1, x2, y2]``, some of them over the border, for maps of `size` pixels a side."""
    generator = random.Random(seed)
    rows = []
    for _ in range(count):
        x, y = generator.uniform(0, size * 0.6), generator.uniform(0, size * 0.6)
        width, height = generator.uniform(1, size * 0.5), generator.uniform(1, size * 0.5)
        corners = [value / scale for value in (x, y, x + width, y + height)]
        rows.append([float(generator.randrange(images))] + [math.floor(value * 64) / 64.0 for value in corners])
    return rows


def _bilinear(y, x, size):
    """Pixels and weights of the value at (`y`, `x`): a list of ``(row, column, weight)``."""
    # as torchvision: a position up to one pixel outside counts as the border, further out as zero
    if y < -1 or y > size or x < -1 or x > size:
        return []
    axes = []
    for position in (max(y, 0.0), max(x, 0.0)):
        low = int(position)
        if low >= size - 1:
            axes.append(((size - 1, 1.0),))
        else:
            axes.append(((low, 1.0 - (position - low)), (low + 1, position - low)))
    return [(row, column, a * b) for row, a in axes[0] for column, b in axes[1]]


def roi_weights(region, size, scale, pooled, sampling, aligned):
    """Weights that RoIAlign gives the pixels of a square map for each of the `pooled` x `pooled` cells.

    Returns a list of cells, each a list of ``(row, column, weight)``.
    Source: "Mask R-CNN" (He and others, 2017), section 3, with the half-pixel offset of `aligned`.
    """
    offset = 0.5 if aligned else 0.0
    left, top, right, bottom = (value * scale - offset for value in region[1:])
    width, height = right - left, bottom - top
    if not aligned:
        width, height = max(width, 1.0), max(height, 1.0)
    cells = []
    for row in range(pooled):
        for column in range(pooled):
            cell = []
            for i in range(sampling):
                y = top + height / pooled * (row + (i + 0.5) / sampling)
                for j in range(sampling):
                    x = left + width / pooled * (column + (j + 0.5) / sampling)
                    cell.extend(_bilinear(y, x, size))
            cells.append([(r, c, weight / (sampling * sampling)) for r, c, weight in cell])
    return cells


def roi_align(features, rows, cells_of, pooled):
    """RoIAlign of nested lists ``features[image][channel][row][column]``, one output per row of `rows`."""
    output = []
    for region, cells in zip(rows, cells_of):
        image = features[int(region[0])]
        maps = []
        for channel in image:
            values = [sum(weight * channel[r][c] for r, c, weight in cell) for cell in cells]
            maps.append([values[start : start + pooled] for start in range(0, pooled * pooled, pooled)])
        output.append(maps)
    return output


def roi_align_gradient(shape, rows, cells_of, upstream):
    """Gradient of RoIAlign's input (of `shape`) for its output's gradient `upstream`: the same weights transposed."""
    images, channels, height, width = shape
    gradient = [[[[0.0] * width for _ in range(height)] for _ in range(channels)] for _ in range(images)]
    for index, (region, cells) in enumerate(zip(rows, cells_of)):
        for channel in range(channels):
            target = gradient[int(region[0])][channel]
            for value, cell in zip(flat(upstream[index][channel]), cells):
                for r, c, weight in cell:
                    target[r][c] += weight * value
    return gradient


def product_element(left, right, row, column):
    """One element of the matrix product of nested lists."""
    # fsum adds without intermediate rounding, so that the reference has no error of its own worth counting
    return math.fsum(left[row][k] * right[k][column] for k in range(len(right)))


def convolution_element(inputs, weights, bias, stride, padding, place):
    """One element, at `place` = (image, output channel, row, column), of a two-dimensional convolution."""
    image, channel, row, column = place
    terms = [bias[channel]]
    for plane, kernel in zip(inputs[image], weights[channel]):
        for i, kernel_row in enumerate(kernel):
            for j, weight in enumerate(kernel_row):
                y, x = row * stride + i - padding, column * stride + j - padding
                if 0 <= y < len(plane) and 0 <= x < len(plane[0]):
                    terms.append(weight * plane[y][x])
    return math.fsum(terms)
