"""The bytes of a small ONNX model, written by hand: the package onnx need not be installed.

Field numbers are those of ``onnx.proto`` (https://github.com/onnx/onnx/blob/main/onnx/onnx.proto).
"""

from __future__ import annotations

FLOAT = 1
"""``TensorProto.DataType.FLOAT``."""


def _varint(number):
    parts = bytearray()
    while True:
        low, number = number & 0x7F, number >> 7
        parts.append(low | (0x80 if number else 0))
        if not number:
            return bytes(parts)


def _number(field, value):
    return _varint(field << 3) + _varint(value)


def _bytes(field, value):
    content = value.encode() if isinstance(value, str) else value
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _value(name, shape):
    dimensions = b"".join(_bytes(1, _number(1, size)) for size in shape)
    tensor = _number(1, FLOAT) + _bytes(2, dimensions)
    return _bytes(1, name) + _bytes(2, _bytes(1, tensor))


def _node(operator, inputs, output):
    return b"".join(_bytes(1, name) for name in inputs) + _bytes(2, output) + _bytes(4, operator)


def product_and_convolution(size, image):
    """A model of two nodes: ``product = left @ right``, ``moved = conv(image, kernel)``."""
    inner = image - 2
    nodes = _bytes(1, _node("MatMul", ("left", "right"), "product")) + _bytes(
        1, _node("Conv", ("image", "kernel"), "moved")
    )
    inputs = (
        ("left", (size, size)),
        ("right", (size, size)),
        ("image", (1, 1, image, image)),
        ("kernel", (1, 1, 3, 3)),
    )
    outputs = (("product", (size, size)), ("moved", (1, 1, inner, inner)))
    graph = nodes + _bytes(2, "check")
    graph += b"".join(_bytes(11, _value(name, shape)) for name, shape in inputs)
    graph += b"".join(_bytes(12, _value(name, shape)) for name, shape in outputs)
    # ir_version 8 and opset 13: every release of onnxruntime from 1.10 on reads them
    return _number(1, 8) + _bytes(7, graph) + _bytes(8, _number(2, 13))
