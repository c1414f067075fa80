"""Linear algebra (cuSOLVER on GPUs), sparse products (cuSPARSE) and gradients against finite differences.

What is used of torch, and nothing else: ``torch.tensor(list, dtype=)``, ``torch.float32 / float64 / int64``,
``torch.linalg.cholesky, qr, eigh, solve`` (before 1.8 ``torch.cholesky, qr, symeig, solve``);
``torch.sparse_coo_tensor``, ``torch.sparse_csr_tensor`` and ``torch.mv`` (GPU only), ``torch.sparse.mm``;
``torch.matmul, tanh, softmax``; of a tensor ``to(device)``, ``double()``, ``cpu()``, ``detach()``, ``tolist()``,
``device.type``, ``requires_grad_()``, ``grad``, and ``(y * upstream).sum().backward()``;
``torch.backends.cuda.preferred_linalg_library`` where it exists (GPU only).
"""

from __future__ import annotations

import random

from envmedic_kernels.checks import dense
from envmedic_kernels.harness import torch_support
from envmedic_kernels.harness.outcome import Result, same, within
from envmedic_kernels.references import exact, reference

ORDERS = {"cpu": (5, 24), "gpu": (5, 96)}
"""Rows of the matrices that are factored."""
SPARSE = {"cpu": (17, 23, 5), "gpu": (300, 257, 33)}
"""(rows, inner, columns)"""
STEP = 1e-5
"""Step of the central differences: they err by about its square, and by the roundoff of fp64 over it."""
DIFFERENCE = 1e-7


def _symmetric(generator, order):
    """A well-conditioned symmetric positive definite matrix: ``B Bᵀ / order + identity``, rounded to fp32."""
    factor = reference.uniform(generator, order, order)
    matrix = exact.product(factor, exact.transposed(factor))
    return [
        [round((value / order + (i == j)) * 65536) / 65536.0 for j, value in enumerate(row)]
        for i, row in enumerate(matrix)
    ]


def _listed(tensor, context):
    same("device of the result", tensor.device.type, context.device.partition(":")[0])
    return tensor.detach().double().cpu().tolist()


def _distance(got, wanted):
    """Largest difference of two matrices, relative to the largest element of `wanted`."""
    return reference.largest_error(got, wanted, exact.largest(wanted))


def linalg(context):
    """Cholesky, QR, eigenvalues and a linear system: the factors multiply to the matrix, the solution solves.

    Backward stable algorithms leave residuals of a small multiple of `order` roundings (Higham, chapters 10, 19).
    """
    import torch

    dense.prepare(torch, context)
    prefer = getattr(torch.backends.cuda, "preferred_linalg_library", None) if context.on_gpu else None
    if prefer is not None:
        prefer("cusolver")  # else some torch builds take MAGMA
    errors = []
    for order in ORDERS["gpu" if context.on_gpu else "cpu"]:
        limit = 32.0 * order * reference.UNIT_ROUNDOFF["fp32"]
        for seed in context.seeds():
            for part, error in _linalg_round(torch, context, seed, order):
                errors.append((within("%s of order %d, seed %d" % (part, order, seed), error, limit), limit))
    return Result("seed %d" % context.seed, *dense.nearest(errors))


def _functions(torch):
    """The functions of ``torch.linalg``, or what they were called before 1.8."""
    if torch_support.release(torch) >= (1, 8):
        module = torch.linalg
        return module.cholesky, module.qr, module.eigh, module.solve
    return (
        torch.cholesky,
        torch.qr,
        lambda matrix: torch.symeig(matrix, eigenvectors=True),
        lambda matrix, right: torch.solve(right, matrix)[0],
    )


def _linalg_round(torch, context, seed, order):
    generator = random.Random(seed)
    cholesky, qr, eigh, solve = _functions(torch)
    matrix = _symmetric(generator, order)
    tensor = torch.tensor(matrix, dtype=torch.float32).to(context.device)
    lower = _listed(cholesky(tensor), context)
    yield "Cholesky", _distance(exact.product(lower, exact.transposed(lower)), matrix)
    q, r = (_listed(factor, context) for factor in qr(tensor))
    identity = [[float(i == j) for j in range(order)] for i in range(order)]
    yield "QR", _distance(exact.product(q, r), matrix)
    yield "Q of QR", _distance(exact.product(exact.transposed(q), q), identity)
    # products of the factors are compared, not the factors: signs and order of eigenvectors are not determined
    values, vectors = (_listed(factor, context) for factor in eigh(tensor))
    scaled = [[vector * value for vector, value in zip(row, values)] for row in vectors]
    yield "eigenvalues", _distance(exact.product(scaled, exact.transposed(vectors)), matrix)
    yield "eigenvectors", _distance(exact.product(exact.transposed(vectors), vectors), identity)
    wanted = reference.uniform(generator, order, 2)
    right = exact.product(matrix, wanted)
    got = _listed(solve(tensor, torch.tensor(right, dtype=torch.float32).to(context.device)), context)
    yield "linear system", _distance(got, wanted)


def sparse(context):
    """Products of a sparse matrix and a dense one, from coordinates, and on GPUs from compressed rows, with a vector too."""
    import torch

    dense.prepare(torch, context)
    shape = SPARSE["gpu" if context.on_gpu else "cpu"]
    limit = 4.0 * shape[1] * reference.UNIT_ROUNDOFF["fp32"]
    worst = 0.0
    for seed in context.seeds():
        for kind, error in _sparse_round(torch, context, seed, shape):
            worst = max(worst, within("sparse product, %s, seed %d" % (kind, seed), error, limit))
    return Result("seed %d" % context.seed, worst, limit)


def _sparse_round(torch, context, seed, shape):
    rows, inner, columns = shape
    generator = random.Random(seed)
    # Sorted by row and distinct, as the compressed form needs them.
    places = sorted({(generator.randrange(rows), generator.randrange(inner)) for _ in range(rows * 4)})
    values = reference.uniform(generator, len(places))
    right = reference.uniform(generator, inner, columns)
    wanted, scale = ([[0.0] * columns for _ in range(rows)] for _ in range(2))
    for (row, column), value in zip(places, values):
        for index, factor in enumerate(right[column]):
            wanted[row][index] += value * factor
            scale[row][index] += abs(value * factor)
    tensors = torch.tensor(values, dtype=torch.float32), torch.tensor(right, dtype=torch.float32).to(context.device)
    numbers = torch.tensor(exact.transposed(places), dtype=torch.int64)
    coordinates = torch.sparse_coo_tensor(numbers, tensors[0], (rows, inner)).to(context.device)
    got = _listed(torch.sparse.mm(coordinates, tensors[1]), context)
    yield "coordinates", reference.largest_error(got, wanted, scale)
    if context.on_gpu and torch_support.release(torch) >= (1, 10):
        starts = [sum(1 for row, _ in places if row < bound) for bound in range(rows + 1)]
        pieces = (torch.tensor(each, dtype=torch.int64).to(context.device) for each in (starts, [c for _, c in places]))
        compressed = torch.sparse_csr_tensor(*pieces, tensors[0].to(context.device), size=(rows, inner))
        got = _listed(torch.matmul(compressed, tensors[1]), context)
        yield "compressed rows", reference.largest_error(got, wanted, scale)
        # another function of cuSPARSE
        vector = torch.tensor([row[0] for row in right], dtype=torch.float32).to(context.device)
        got = _listed(torch.mv(compressed, vector), context)
        firsts = [[row[0] for row in each] for each in (wanted, scale)]
        yield "compressed rows and a vector", reference.largest_error(got, *firsts)


def autograd(context):
    """Gradients of a small network in fp64 agree with central differences of its values on the same device."""
    import torch

    dense.prepare(torch, context)
    worst = 0.0
    for seed in context.seeds():
        generator = random.Random(seed)
        operands = [reference.uniform(generator, *shape) for shape in ((4, 5), (5, 3), (4, 3))]
        gradients = _gradients(torch, context, operands)
        for index, name in enumerate(("input", "weight")):
            differences = _differences(torch, context, operands, index)
            error = _distance(gradients[index], differences)
            worst = max(worst, within("gradient of the %s, seed %d" % (name, seed), error, DIFFERENCE))
    return Result("seed %d, central differences" % context.seed, worst, DIFFERENCE)


def _network(torch, x, weight, upstream):
    return (torch.softmax(torch.tanh(torch.matmul(x, weight)), 1) * upstream).sum()


def _placed(torch, context, operands):
    return [torch.tensor(each, dtype=torch.float64).to(context.device).detach() for each in operands]


def _gradients(torch, context, operands):
    x, weight, upstream = _placed(torch, context, operands)
    x.requires_grad_()
    weight.requires_grad_()
    _network(torch, x, weight, upstream).backward()
    return _listed(x.grad, context), _listed(weight.grad, context)


def _differences(torch, context, operands, index):
    """Central differences of the network's value by each element of ``operands[index]``."""

    def value(row, column, step):
        moved = [[list(line) for line in each] for each in operands]
        moved[index][row][column] += step
        return float(_network(torch, *_placed(torch, context, moved)).cpu().tolist())

    return [
        [(value(i, j, STEP) - value(i, j, -STEP)) / (2 * STEP) for j in range(len(row))]
        for i, row in enumerate(operands[index])
    ]
