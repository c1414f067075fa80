"""``python -m tests.gpu.replays [NAMES] [--prefix PREFIX]``: genuine faults, repaired offline on a GPU; one table.

PREFIX is a healthy environment with a CUDA build of torch (default: that of the ``python3`` on PATH). It is copied by
hard links for each replay, and never changed itself. Exit status 1 where a replay does not end as it should.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path

from tests.gpu.replays.faults import REPLAYS
from tests.gpu.replays.replay import Replay, Result, perform
from tests.gpu.replays.room import copied

COLUMNS = ("broken", "by_text", "by_facts", "repaired", "passes", "undone", "redone")


def main(arguments: Sequence[str]) -> int:
    """Run the replays that are named (all by default)."""
    options = parse(arguments)
    if not options.no_gpu and not gpus():
        say("skipped: no NVIDIA GPU is visible (nvidia-smi lists none)")
        return 0
    chosen = [item for item in REPLAYS if not options.names or any(name in item.name for name in options.names)]
    results: list[Result] = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for future in as_completed([pool.submit(attempt, replay, options) for replay in chosen]):
            result = future.result()
            results.append(result)
            say(row(result))
            if options.samples and result.broken:
                (options.samples / f"{result.name}.txt").write_text(result.sample, encoding="utf-8")
            if options.json:
                options.json.write_text(json.dumps(document(options, results), indent=1))
    wrong = [item.name for item in results if not item.ok and not item.skipped]
    say(f"{sum(item.ok for item in results)} of {len(results)} as they should be; wrong: {', '.join(wrong) or 'none'}")
    return 1 if wrong or not results else 0


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Which replays, of what, and where."""
    parser = argparse.ArgumentParser(prog="python -m tests.gpu.replays", description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of names (default: every replay)")
    parser.add_argument("--prefix", type=Path, help="a healthy environment with torch")
    parser.add_argument("--folder", type=Path, help="where copies are made, on the same file system")
    parser.add_argument("--wheels", type=Path, help="directory of wheels of torchvision for other torches")
    parser.add_argument("--json", type=Path, help="write everything to this file, after each replay")
    parser.add_argument("--jobs", type=int, default=1, help="replays at a time (default: %(default)s)")
    parser.add_argument("--samples", type=Path, help="write the genuine error texts to this directory")
    parser.add_argument("--no-repair", action="store_true", help="stop when the faults are found")
    parser.add_argument("--no-gpu", action="store_true", help="go through what can be seen without a GPU")
    options = parser.parse_args(arguments)
    options.prefix = (options.prefix or default_prefix()).absolute()
    options.folder = (options.folder or options.prefix.parent / ".replays").absolute()
    options.wheels = (options.wheels or options.folder / "wheels").absolute()
    return options


def default_prefix() -> Path:
    """The environment of the python3 on PATH."""
    text = subprocess.run(
        ["python3", "-c", "import sys; print(sys.prefix)"], capture_output=True, text=True, check=True
    ).stdout
    return Path(text.strip())


def gpus() -> list[str]:
    """What nvidia-smi says of each GPU."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    argv = [program, "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    return done.stdout.splitlines() if done.returncode == 0 else []


def attempt(replay: Replay, options: argparse.Namespace) -> Result:
    """One replay in a copy of its own, gone afterwards."""
    folder = options.folder / replay.name
    started = time.monotonic()
    room = copied(options.prefix, folder, options.wheels, {"UV_CACHE_DIR": str(folder / "uv-cache")})
    copying = round(time.monotonic() - started, 1)
    try:
        result = perform(replay, room, gpu=not options.no_gpu, repair=not options.no_repair)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    result.seconds = {"copy": copying, **result.seconds, "total": round(time.monotonic() - started, 1)}
    return result


def row(result: Result) -> str:
    """One line of the table."""
    word = "ok" if result.ok else "skipped" if result.skipped else "WRONG"
    marks = "  ".join(f"{name} {_mark(getattr(result, name)):3}" for name in COLUMNS)
    more = result.skipped or result.error or ("" if result.ok else str(result.record.get("said", ""))[:600])
    return (
        f"{word:8}{result.name:24}{marks}  gpu {result.gpu or '-'}  {result.seconds.get('total', 0):.0f} s  "
        f"text: {result.text}; facts: {result.facts}" + (f"\n        {more}" if more else "")
    )


def _mark(value: bool | None) -> str:  # noqa: FBT001  # the value itself
    return "-" if value is None else "yes" if value else "NO"


def document(options: argparse.Namespace, results: Sequence[Result]) -> dict[str, object]:
    """Everything, for --json."""
    return {"gpus": gpus(), "prefix": str(options.prefix), "replays": [asdict(item) for item in results]}


def say(text: str) -> None:
    """Print at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
