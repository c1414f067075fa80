"""cuDF: sums and groups on a GPU equal those of plain Python."""

from __future__ import annotations

from envmedic_kernels.consumers import common
from envmedic_kernels.harness.outcome import NotApplicable, Result, same


def compute(context):
    """A sum and a sum by groups of whole numbers, which have no rounding."""
    common.needs("cudf")
    if not context.on_gpu:
        raise NotApplicable("cuDF computes on GPUs alone")
    common.alone(context)
    import cudf

    for seed in context.seeds():
        numbers = [int(item * 65536) for item in common.Product(seed).left[0]]
        keys = [number % 3 for number in range(len(numbers))]
        frame = cudf.DataFrame({"key": keys, "number": numbers})
        same("a sum by cuDF", int(frame.number.sum()), sum(numbers))
        groups = frame.groupby("key").number.sum().to_pandas().to_dict()
        wanted = {key: sum(item for item, own in zip(numbers, keys) if own == key) for key in range(3)}
        same("sums by groups", {int(key): int(value) for key, value in groups.items()}, wanted)
    return Result("cudf %s, seed %d" % (cudf.__version__, context.seed))
