"""torch.distributed through files: each process writes its numbers and reads those of all."""

from __future__ import annotations

import datetime as dt
import json
import time
from pathlib import Path

import torch
from torch import Tensor

_STATE: dict[str, str] = {}


def init_process_group(  # torch's own
    backend: str, *, init_method: str, rank: int, world_size: int, timeout: dt.timedelta
) -> None:
    assert timeout.total_seconds() > 0
    torch.misbehave(f"{backend} of rank {rank}")
    _STATE.update(path=init_method.removeprefix("file://"), rank=str(rank), size=str(world_size))


def all_reduce(tensor: Tensor) -> None:
    sums = [sum(column) for column in zip(*_exchanged("reduce", tensor), strict=True)]
    tensor.data[:] = torch.spoiled(sums, f"all-reduce of rank {_STATE['rank']}", tensor.where)


def all_gather(gathered: list[Tensor], tensor: Tensor) -> None:
    for rank, (into, data) in enumerate(zip(gathered, _exchanged("gather", tensor), strict=True)):
        into.data[:] = torch.spoiled(data, f"all-gather from rank {rank}", tensor.where)


def _exchanged(what: str, tensor: Tensor) -> list[list[float]]:
    """The numbers of all ranks, in their order."""
    folder, size = Path(f"{_STATE['path']}-{what}"), int(_STATE["size"])
    folder.mkdir(exist_ok=True)
    mine = folder / _STATE["rank"]
    mine.with_suffix(".new").write_text(json.dumps(tensor.data))
    mine.with_suffix(".new").rename(mine)
    paths = [folder / str(rank) for rank in range(size)]
    while not all(path.exists() for path in paths):
        time.sleep(0.01)
    return [json.loads(path.read_text()) for path in paths]


def destroy_process_group() -> None:
    _STATE.clear()
