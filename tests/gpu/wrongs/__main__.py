"""``python -m tests.gpu.wrongs PREFIX``: environments that compute wrongly, one after the other, and which checks see it.

Each row of the table is one fault: a call of a CUDA library that a preloaded shim spoils (`shims.c`), an edit of torch's
or torchvision's Python (`edited/sitecustomize.py`), or a variable of the shell. The checks of the standard profile that
compute on a GPU then run in the environment's own Python. A fault is caught where a check does not pass that passes
without it. ``called`` tells whether the checks came by the place at all. Exit status 1 where more than `MISSED` are missed.
"""

from __future__ import annotations

# ruff: noqa: T201  # a table for people is what it is for
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.gpu.checks import KERNELS, MARK

HERE = Path(__file__).parent
MISSED = 2


@dataclass(frozen=True)
class Wrong:
    """One fault."""

    name: str
    what: str
    shim: str = ""
    edit: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)
    checks: tuple[str, ...] = ()
    """None named: those that the kernels run by themselves, all but the slow ones."""


def shim(name: str, what: str, *checks: str) -> Wrong:
    """A call of a library that goes wrong."""
    return Wrong(name.replace(" ", " by "), what, shim=name, checks=checks)


def edit(name: str, what: str) -> Wrong:
    """Edited Python."""
    return Wrong(name, what, edit=name)


WRONGS = (
    shim("gemm-fp32 1.0002", "cuBLAS, fp32 products off by 0.02 %"),
    shim("gemm-fp64 1.000001", "cuBLAS, fp64 products off by 1e-6"),
    shim("gemm-fp16 1.01", "cuBLAS, fp16 products off by 1 %"),
    shim("gemm-bf16 1.02", "cuBLAS, bf16 products off by 2 %"),
    shim("batched-fp32 1.001", "cuBLAS, batches of fp32 products off by 0.1 %"),
    shim("batched-fp16 1.01", "cuBLAS, batches of fp16 products off by 1 %"),
    shim("batched-bf16 1.02", "cuBLAS, batches of bf16 products off by 2 %"),
    shim("gemv-fp32 1.01", "cuBLAS, fp32 matrix times vector off by 1 %"),
    shim("lt 1.01", "cuBLASLt off by 1 %: linear layers with bias, fp8"),
    shim("cudnn-execute", "cuDNN's convolutions and attention do nothing"),
    shim("rnn-missing", "cuDNN refuses recurrent networks"),
    shim("rnn-nothing", "cuDNN's recurrent networks do nothing"),
    shim("rnn-weights", "cuDNN gives no gradient for the weights of recurrent networks"),
    shim("norm-average 1.2", "cuDNN, running statistics of batch normalization off"),
    shim("norm-epsilon", "cuDNN, another epsilon in batch normalization"),
    shim("fft-direction", "cuFFT transforms the other way round"),
    shim("fft-nothing", "cuFFT does nothing"),
    shim("spmm 1.001", "cuSPARSE, sparse times dense off by 0.1 %"),
    shim("spmv 1.001", "cuSPARSE, sparse times vector off by 0.1 %"),
    shim("potrf", "cuSOLVER's Cholesky does nothing"),
    shim("geqrf", "cuSOLVER's QR does nothing"),
    shim("nccl-fails", "NCCL refuses all-reduce", "all-reduce"),
    shim("nccl-gather", "NCCL's all-gather forgets the last element", "all-reduce"),
    shim("copy-back", "copies from the GPU lose the last byte"),
    shim("copy-within", "copies within the GPU lose the last byte"),
    shim("no-waiting", "streams do not wait for events"),
    edit("causal-ignored", "attention ignores is_causal"),
    edit("mask-ignored", "attention ignores its mask"),
    edit("long-attention-off", "attention beyond 1,024 positions off by 2 %"),
    edit("pointwise-off", "1x1 convolutions off by 10 %"),
    edit("by-channel-off", "convolutions by channel off by 2 %"),
    edit("conv3d-off", "convolutions in three dimensions off by 2 %"),
    edit("strided-gradient", "gradients of convolutions with strides off by 5 %"),
    edit("half-linear-off", "linear layers in bf16 off by 2 %"),
    edit("bias-forgotten", "linear layers without their bias"),
    edit("gru-gate", "GRU off by 1 %"),
    edit("layer-norm-epsilon", "layer normalization with another epsilon"),
    edit("group-norm-groups", "group normalization with half the groups"),
    edit("norm-momentum", "batch normalization forgets running statistics"),
    edit("softmax-axis", "softmax over another axis"),
    edit("smoothing-ignored", "cross entropy without label smoothing"),
    edit("ignored-counted", "cross entropy counts ignored labels"),
    edit("gelu-by-tanh", "GELU by its approximation"),
    edit("embedding-gradient", "half the gradient of an embedding"),
    edit("sort-upwards", "sort ignores descending"),
    edit("topk-second", "topk leaves the largest out"),
    edit("index-add-once", "index_add keeps one row of several"),
    edit("cumsum-narrow", "cumsum adds in bf16"),
    edit("corners-aligned", "interpolation aligns corners"),
    edit("pooling-padded", "average pooling off by 2 %"),
    edit("dropout-share", "dropout drops 1 % more"),
    edit("random-repeats", "random numbers repeat each other"),
    edit("decay-ignored", "AdamW without weight decay"),
    edit("infinite-steps", "the gradient scaler takes infinite steps"),
    edit("autocast-off", "autocast does nothing"),
    edit("narrow-places", "places beyond 2**31 cut off"),
    edit("not-awaited", "streams do not wait for events (Python)"),
    edit("nms-many", "nms wrong above 1,000 boxes"),
    edit("kinds-ignored", "batched_nms ignores the kind of boxes"),
    Wrong("ptxas", "Triton's assembler does not start", variables={"TRITON_PTXAS_PATH": "/bin/false"},
          checks=("triton-kernel", "torch-compile")),
)  # fmt: skip


@dataclass(frozen=True)
class Seen:
    """What the checks made of one fault."""

    name: str
    what: str
    called: bool
    caught: tuple[str, ...]
    seconds: float
    reason: str = ""


def outcomes(prefix: Path, checks: Sequence[str], variables: Mapping[str, str], device: str) -> list[dict[str, Any]]:
    """The outcomes of one session."""
    argv = [str(prefix / "bin/python"), "-B", str(KERNELS / "driver.py"), "--timeout", "90"]
    argv += ["--devices", "all" if device == "cuda" else "cpu", *(("--checks", ",".join(checks)) if checks else ())]
    done = subprocess.run(argv, env={**os.environ, **variables}, capture_output=True, text=True, check=False)
    lines = [line[len(MARK) :] for line in done.stdout.splitlines() if line.startswith(MARK + "{")]
    messages = [json.loads(line) for line in lines]
    if not messages or messages[-1] != {"end": True}:
        print(f"a session ended before its end: exit status {done.returncode}\n{done.stderr[-1500:]}", flush=True)
    return [message["outcome"] for message in messages if "outcome" in message]


def bad(found: Sequence[Mapping[str, Any]], device: str) -> dict[str, str]:
    """The parts of checks on a device that did not pass, with their reasons."""
    here = [item for item in found if (item["device"] or device).startswith(device)]
    return {item["check"]: item["reason"] for item in here if item["status"] not in ("pass", "skip")}


def seen(wrong: Wrong, prefix: Path, library: Path, device: str, sound: Mapping[str, str]) -> Seen:
    """Put a fault in, and run the checks."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        hits = Path(folder) / "hits"
        variables = {**wrong.variables, "ENVMEDIC_HITS": str(hits), "ENVMEDIC_EDIT_ON": device}
        if wrong.shim:
            variables |= {"LD_PRELOAD": str(library), "ENVMEDIC_SHIM": wrong.shim}
        if wrong.edit:
            variables |= {"PYTHONPATH": str(HERE / "edited"), "ENVMEDIC_EDIT": wrong.edit}
        found = bad(outcomes(prefix, wrong.checks, variables, device), device)
        called = hits.exists() or not (wrong.shim or wrong.edit)
    caught = tuple(name for name in found if name not in sound)
    reason = found[caught[0]][:160] if caught else ""
    return Seen(wrong.name, wrong.what, called, caught, round(time.monotonic() - started, 1), reason)


def compiled(folder: Path) -> Path:
    """The shims, compiled."""
    library = folder / "shims.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, HERE / "shims.c", "-ldl"], check=True)
    return library


def table(rows: Sequence[Seen]) -> str:
    """The table of docs/gpu-replays.md."""
    lines = ["| wrong | what | caught by |", "| --- | --- | --- |"]
    for row in rows:
        by = ", ".join(row.caught[:4]) + (f" and {len(row.caught) - 4} more" if len(row.caught) > 4 else "")
        lines.append(
            f"| `{row.name}` | {row.what} | {by or ('**missed**' if row.called else '**missed** (not called)')} |"
        )
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    """Run all of it; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prefix", type=Path)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--only", default="", help="comma-separated names")
    parser.add_argument("--jobs", type=int, default=6, help="sessions at a time (default: %(default)s)")
    parser.add_argument("--json", type=Path, help="write everything to this file")
    parser.add_argument("--table", type=Path, help="write the table to this file")
    given = parser.parse_args(arguments)
    chosen = [item for item in WRONGS if not given.only or item.name.split(" ")[0] in given.only.split(",")]
    if given.device == "cpu":
        chosen = [item for item in chosen if item.edit]
    sound: dict[str, str] = {}
    for checks in dict.fromkeys(item.checks for item in chosen):
        sound |= bad(outcomes(given.prefix, checks, {}, given.device), given.device)
    print(f"without a fault: {sound or 'every check passes'}", flush=True)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(given.jobs) as pool:
        library = compiled(Path(folder))
        rows = []
        for row in pool.map(lambda item: seen(item, given.prefix, library, given.device, sound), chosen):
            rows.append(row)
            word = "caught" if row.caught else "MISSED" if row.called else "MISSED (not called)"
            print(
                f"{word:8} {row.name:26} {row.seconds:6.1f} s  {', '.join(row.caught)[:80]}  {row.reason[:90]}",
                flush=True,
            )
    missed = [row for row in rows if not row.caught]
    print(
        f"{len(rows)} faults, {len(rows) - len(missed)} caught; missed: {', '.join(row.name for row in missed) or 'none'}"
    )
    if given.json:
        given.json.write_text(json.dumps({"sound": sound, "rows": [asdict(row) for row in rows]}, indent=1))
    if given.table:
        given.table.write_text(table(rows) + "\n", encoding="utf-8")
    return 1 if len(missed) > MISSED or sound or not rows else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
