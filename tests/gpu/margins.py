"""``PYTHON tests/gpu/margins.py [FILE]``: how near each result of the checks of training comes to its tolerance.

Run by the environment's own Python, on a sound GPU. For each result, the largest error of several seeds, in units of
roundoff, beside the units that are allowed, and the seconds of a second run of its check: the first one also loads code.
A tolerance is right where no sound GPU comes near it and a small fault exceeds it.
"""

from __future__ import annotations

# ruff: noqa: T201  # a table for people is what it is for
import importlib
import json
import sys
import time
from pathlib import Path
from typing import Any

MODULES = ("linear", "recurrent", "normalization", "convolutions", "losses", "selection", "pooling")
KINDS = ("fp32", "fp16", "bf16", "fp64")
SEEDS = 12
Units = dict[str, tuple[float, float]]


def kernel(name: str) -> Any:
    """A module of the kernels, which no other code imports."""
    folder = str(Path(__file__).resolve().parents[2] / "envmedic" / "kernels")
    if "envmedic_kernels" not in sys.modules:
        sys.path.insert(0, folder)
        importlib.import_module("driver").package()
    return importlib.import_module("envmedic_kernels." + name)


def units(module: Any, context: Any, kind: str) -> Units:
    """The largest error of each result over the context's seeds, with what is allowed, in units of roundoff."""
    torch, agreement = importlib.import_module("torch"), kernel("training.agreement")
    kernel("checks.dense").prepare(torch, context)
    found: Units = {}
    for seed in context.seeds():
        for part in module.parts(agreement.Inputs(torch, context, kind, seed)):
            if part.units:
                error = part.error() / agreement.ROUNDOFF[part.kind or kind]
                found[part.what] = (max(error, found.get(part.what, (0.0, 0.0))[0]), part.units)
    return found


def timed(function: Any, device: str, seed: int) -> tuple[float, str]:
    """The seconds of a check with one seed, and what it says."""
    started = time.monotonic()
    try:
        result = function(kernel("harness.outcome").Context(device, seed, 1))
    except Exception as error:  # noqa: BLE001  # the others are still to be measured
        said = f"{type(error).__name__}: {str(error)[:200]}"
    else:
        said = f"{result.note} {f'{result.error:.2g} of {result.tolerance:.2g}' if result.tolerance else ''}"
    if device != "cpu":
        importlib.import_module("torch").cuda.synchronize()
    return round(time.monotonic() - started, 3), said


def measured(device: str) -> dict[str, Units]:
    """The margins of every module and precision, printed as they come."""
    table = {}
    for name in MODULES:
        for kind in KINDS:
            context = kernel("harness.outcome").Context(device, 1, SEEDS)
            found = table[f"{name} {kind}"] = units(kernel("training." + name), context, kind)
            worst = sorted(found.items(), key=lambda item: -item[1][0] / item[1][1])[:4]
            print(
                f"{name} {kind}".ljust(20),
                "; ".join(f"{what} {error:.2f} of {limit:g}" for what, (error, limit) in worst),
            )
    return table


def durations(device: str) -> dict[str, tuple[float, float]]:
    """Seconds of each check, the first time and the second."""
    seconds = {}
    catalogue = kernel("catalogue")
    parts = [part for name, each in catalogue.CHECKS.items() if name not in catalogue.SLOW for part in each]
    for name, function, where in parts:
        if where == catalogue.NOWHERE or (device == "cpu" and where == catalogue.GPU_ONLY):
            continue
        (first, _), (second, said) = timed(function, device, 1), timed(function, device, 2)
        seconds[name] = (first, second)
        print(f"{name:28} first {first:6.3f} s  then {second:6.3f} s  {said}", flush=True)
    return seconds


def main(arguments: list[str]) -> None:
    """Measure, and write the file."""
    device = "cuda:0" if importlib.import_module("torch").cuda.is_available() else "cpu"
    table, seconds = measured(device), durations(device)
    if arguments:
        Path(arguments[0]).write_text(json.dumps({"units": table, "seconds": seconds}, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
