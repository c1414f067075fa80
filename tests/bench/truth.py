"""Run by an environment's own Python: opens each file named on standard input as Python would, after torch.

Prints one line of JSON: for each path the loader's error or null, and torch's own list of GPU architectures.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys


def loads(path: str) -> str | None:
    """The loader's error, None when it loads. Forked, so that no file sees what another one brought along."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, opened(path).encode()[:4000])
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        text = answer.read()
    _, status = os.waitpid(child, 0)
    return text or (f"ended by {status}" if status else None)


def opened(path: str, attempts: int = 5) -> str:
    """The loader's error, empty when there is none. A package may open what lies beside a module before it."""
    try:
        ctypes.CDLL(path, mode=os.RTLD_NOW)
    except OSError as problem:
        error = str(problem)
    else:
        return ""
    name = error.partition(":")[0]
    beside = os.path.join(os.path.dirname(path), name)  # noqa: PTH118, PTH120
    if not attempts or "cannot open shared object" not in error or not os.path.exists(beside):  # noqa: PTH110
        return error
    return opened(beside, attempts - 1) or opened(path, attempts - 1)


def architectures() -> list[str] | None:
    """Capabilities of torch's own list, None without torch or for a CPU build."""
    try:
        import torch
    except ImportError:
        return None
    if torch.version.cuda is None:
        return None
    flags = torch._C._cuda_getArchFlags()
    numbers = [flag[3:] for flag in (flags or "").split() if flag.startswith("sm_")]
    return [f"{item.rstrip('af')[:-1]}.{item.rstrip('af')[-1]}{item[len(item.rstrip('af')) :]}" for item in numbers]


if __name__ == "__main__":
    LIST = architectures()
    OUTCOMES = {path: loads(path) for path in sys.stdin.read().splitlines()}
    print(json.dumps({"loads": OUTCOMES, "architectures": LIST}))  # noqa: T201
