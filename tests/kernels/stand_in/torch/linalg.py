"""torch.linalg: textbook algorithms, other than those by which the checks judge them."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

Rows = list[list[float]]


def _made(name: str, rows: Any, like: Tensor) -> Tensor:
    flat = [value for row in rows for value in (row if isinstance(row, list) else [row])]
    shape = (len(rows), len(rows[0])) if isinstance(rows[0], list) else (len(rows),)
    return Tensor(torch.spoiled(flat, name, like.where), shape, like.dtype, like.where)


def cholesky(matrix: Tensor) -> Tensor:
    torch.misbehave("cholesky")
    rows: Rows = matrix.tolist()
    lower: Rows = [[0.0] * len(rows) for _ in rows]
    for i in range(len(rows)):
        for j in range(i + 1):
            rest = rows[i][j] - sum(lower[i][k] * lower[j][k] for k in range(j))
            lower[i][j] = math.sqrt(rest) if i == j else rest / lower[j][j]
    return _made("cholesky", lower, matrix)


def qr(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Gram and Schmidt, twice for each column."""
    columns = [list(column) for column in zip(*matrix.tolist(), strict=True)]
    basis: Rows = []
    upper: Rows = [[0.0] * len(columns) for _ in columns]
    for j, column in enumerate(columns):
        left = list(column)
        for _ in range(2):
            for i, unit in enumerate(basis):
                share = sum(a * b for a, b in zip(unit, left, strict=True))
                upper[i][j] += share
                left = [value - share * one for value, one in zip(left, unit, strict=True)]
        upper[j][j] = math.sqrt(sum(value * value for value in left))
        basis.append([value / upper[j][j] for value in left])
    q = [list(row) for row in zip(*basis, strict=True)]
    return _made("q of qr", q, matrix), _made("r of qr", upper, matrix)


def eigh(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Jacobi's rotations."""
    a: Rows = matrix.tolist()
    size = len(a)
    vectors = [[float(i == j) for j in range(size)] for i in range(size)]
    for _ in range(12):
        for p in range(size):
            for q in range(p + 1, size):
                if math.fabs(a[p][q]) < 1e-14:
                    continue
                angle = 0.5 * math.atan2(2 * a[p][q], a[q][q] - a[p][p])
                c, s = math.cos(angle), math.sin(angle)
                for rows in (a, vectors):
                    for row in rows:
                        row[p], row[q] = c * row[p] - s * row[q], s * row[p] + c * row[q]
                a[p], a[q] = (
                    [c * x - s * y for x, y in zip(a[p], a[q], strict=True)],
                    [s * x + c * y for x, y in zip(a[p], a[q], strict=True)],
                )
    return _made("eigenvalues", [a[i][i] for i in range(size)], matrix), _made("eigenvectors", vectors, matrix)


def solve(matrix: Tensor, right: Tensor) -> Tensor:
    """Gauss and Jordan; what it is for needs no pivots."""
    torch.misbehave("solve")
    rows: Rows = [[*one, *other] for one, other in zip(matrix.tolist(), right.tolist(), strict=True)]
    for i, pivot in enumerate(rows):
        pivot[:] = [value / pivot[i] for value in pivot]
        for j, row in enumerate(rows):
            if j != i:
                row[:] = [value - row[i] * one for value, one in zip(row, pivot, strict=True)]
    return _made("solve", [row[len(rows) :] for row in rows], right)
