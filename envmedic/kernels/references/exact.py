"""More references in plain Python: transforms, attention with its gradients, and small linear algebra on nested lists.

Like `reference`, nothing here uses torch.
"""

from __future__ import annotations

import cmath
import math


def transposed(matrix):
    """Rows as columns."""
    return [list(column) for column in zip(*matrix)]


def product(left, right):
    """Matrix product of nested lists."""
    columns = list(zip(*right))
    return [[sum(a * b for a, b in zip(row, column)) for column in columns] for row in left]


def magnitudes(nested):
    """Absolute values of all numbers."""
    return [magnitudes(part) for part in nested] if isinstance(nested, list) else abs(nested)


def largest(nested):
    """Largest absolute value in nested lists."""
    return max(largest(part) for part in nested) if isinstance(nested, list) else abs(nested)


def fourier(numbers):
    """The discrete Fourier transform by its definition."""
    count = len(numbers)
    roots = [cmath.exp(-2j * math.pi * k / count) for k in range(count)]
    # the definition, not an FFT: an FFT of our own could have the same errors as that of the library
    return [sum(value * roots[i * k % count] for i, value in enumerate(numbers)) for k in range(count)]


def parts(numbers):
    """Complex numbers as ``[real, imaginary]`` pairs, as ``torch.view_as_real`` has them."""
    return [parts(part) if isinstance(part, list) else [complex(part).real, complex(part).imag] for part in numbers]


def softmax(row):
    """Softmax of one row."""
    # the largest is subtracted, so that exp cannot overflow; the result is the same
    top = max(row)
    powers = [math.exp(value - top) for value in row]
    total = math.fsum(powers)
    return [power / total for power in powers]


def attention(query, key, value, upstream):
    """Scaled dot product attention of one head, and the gradients that `upstream` has for its three inputs.

    Returns ``(result, query gradient, key gradient, value gradient)``.
    Source: "Attention Is All You Need" (Vaswani and others, 2017), equation 1, differentiated.
    """
    scale = 1.0 / math.sqrt(len(query[0]))
    weights = [softmax([scale * score for score in row]) for row in product(query, transposed(key))]
    of_weights = product(upstream, transposed(value))
    of_scores = []
    for row, gradient in zip(weights, of_weights):
        mean = math.fsum(w * g for w, g in zip(row, gradient))
        of_scores.append([scale * w * (g - mean) for w, g in zip(row, gradient)])
    return (
        product(weights, value),
        product(of_scores, key),
        product(transposed(of_scores), query),
        product(transposed(weights), upstream),
    )


def filtered(samples, feedback, forward):
    """Output of the recursive filter ``a[0] y[n] = sum b[k] x[n-k] - sum a[k] y[n-k]``."""
    output = []
    for place in range(len(samples)):
        total = sum(b * samples[place - k] for k, b in enumerate(forward) if place >= k)
        total -= sum(a * output[place - k] for k, a in enumerate(feedback) if 0 < k <= place)
        output.append(total / feedback[0])
    return output
