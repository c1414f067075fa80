"""The recording in README: a session in a terminal, from the failing program to the repaired environment and back.

``make recording`` builds the small broken environment of the demo, runs every command in a pseudo terminal as a user
does, and writes what the terminal showed to ``build/recording.svg``, an SVG that animates itself. On a machine with a GPU
``--prefix`` and ``--wheels`` take a healthy environment with torch, and a wheel of another torchvision to break a copy of
it with: the picture in README, ``docs/pictures/recording.svg``, is made so. Waits are cut to a second; nothing else is.
"""

from __future__ import annotations

import argparse
import codecs
import os
import pty
import re
import select
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from fcntl import ioctl
from html import escape
from pathlib import Path
from termios import TIOCSWINSZ

import pyte

from tests.envs.nms_cuda.case import build
from tests.gpu.replays.faults.torchvision import other_torch
from tests.gpu.replays.room import copied

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "build" / "recording.svg"
COLUMNS, ROWS = 96, 27
LONGEST_PAUSE_S = 1.0
TYPING_S = 0.6
READING_S = 2.2
CELL, ROW = 8.43, 18.0
PAPER, INK, DIM = "#16181d", "#d8dee9", "#7d8694"
COLOURS: Mapping[str, str] = {
    "default": INK, "black": "#3b4252", "red": "#ff6b6b", "green": "#8fd48f", "brown": "#e6c07b", "yellow": "#e6c07b",
    "blue": "#7aa8f0", "magenta": "#c792ea", "cyan": "#6fd3d3", "white": "#eceff4",
}  # fmt: skip

PROGRAM = """\
import torch
import torchvision

boxes = torch.tensor([[0.0, 0.0, 10.0, 10.0], [1.0, 1.0, 10.0, 10.0], [20.0, 20.0, 30.0, 30.0]], device="cuda")
scores = torch.tensor([0.9, 0.8, 0.7], device="cuda")
print("kept boxes:", torchvision.ops.nms(boxes, scores, 0.5).tolist(), "on", torch.cuda.get_device_name())
"""

Cells = tuple[tuple[str, str, bool], ...]
"""Runs of one look: text, colour, bold."""


@dataclass(frozen=True)
class Frame:
    """What the terminal showed from `at` on, in seconds."""

    at: float
    rows: tuple[Cells, ...]


class Recorder:
    """A terminal that remembers what it showed, with waits cut short."""

    def __init__(self, variables: Mapping[str, str], folder: Path) -> None:
        self._screen = pyte.Screen(COLUMNS, ROWS)
        self._stream = pyte.Stream(self._screen)
        self._variables, self._folder = variables, folder
        self._now = 0.0
        self.frames: list[Frame] = []

    def run(self, shown: str, argv: Sequence[str]) -> None:
        """Type the command line `shown`, run `argv` to its end, and leave time to read."""
        for end in range(1, len(shown) + 1):
            self._screen.carriage_return()
            self._feed(f"\x1b[1;36m$\x1b[0m {shown[:end]}", TYPING_S / len(shown))
        self._feed("\r\n", 0.3)
        ours, theirs = pty.openpty()
        ioctl(theirs, TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        process = subprocess.Popen(
            argv, stdin=theirs, stdout=theirs, stderr=theirs, cwd=self._folder, env={**os.environ, **self._variables}
        )
        os.close(theirs)
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        before = time.monotonic()
        for chunk in _chunks(ours):
            now = time.monotonic()
            self._feed(decoder.decode(chunk), min(now - before, LONGEST_PAUSE_S))
            before = now
        os.close(ours)
        process.wait()
        self._feed("\r\n", READING_S)

    def _feed(self, text: str, seconds: float) -> None:
        self._now += seconds
        self._stream.feed(text)
        rows = tuple(_runs(self._screen.buffer[number]) for number in range(ROWS))
        if not self.frames or self.frames[-1].rows != rows:
            self.frames.append(Frame(self._now, rows))


def _chunks(descriptor: int) -> Iterator[bytes]:
    while True:
        select.select([descriptor], [], [])
        try:
            chunk = os.read(descriptor, 65536)
        except OSError:  # the last process on it has ended
            return
        if not chunk:
            return
        yield chunk


def _runs(row: Mapping[int, pyte.screens.Char]) -> Cells:
    found: list[tuple[str, str, bool]] = []
    for column in range(COLUMNS):
        cell = row[column]
        look = (_colour(cell.fg), bool(cell.bold))
        if found and found[-1][1:] == look:
            found[-1] = (found[-1][0] + cell.data, *look)
        else:
            found.append((cell.data, *look))
    while found and not found[-1][0].strip():
        found.pop()
    return tuple(found)


def _colour(name: str) -> str:
    known = COLOURS.get(name.removeprefix("bright"))
    return known or (f"#{name}" if re.fullmatch(r"[0-9a-f]{6}", name) else INK)


def drawn(frames: Sequence[Frame], names: Sequence[tuple[str, str]]) -> str:
    """The SVG: all frames below each other, of which an animation in steps shows one after the other."""
    length = frames[-1].at + READING_S
    width, height = COLUMNS * CELL + 24, ROWS * ROW + 24
    rows: dict[Cells, str] = {}
    uses: list[str] = []
    for number, frame in enumerate(frames):
        for place, cells in enumerate(frame.rows):
            if cells:
                name = rows.setdefault(cells, f"r{len(rows)}")
                uses.append(f'<use href="#{name}" y="{number * height + place * ROW:.0f}"/>')
    steps = "".join(
        f"{frame.at / length:.4%}{{transform:translateY({-number * height:.0f}px)}}"
        for number, frame in enumerate(frames)
    )
    defined = "".join(f'<text id="{name}">{_row(cells, names)}</text>' for cells, name in rows.items())
    style = (
        f"text{{font:14px ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;white-space:pre;fill:{INK}}}"
        f"#film{{animation:film {length:.1f}s steps(1,end) infinite}}@keyframes film{{{steps}}}"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}">'
        f"<title>envmedic repairs an environment and takes it back</title><style>{style}</style>"
        f'<rect width="100%" height="100%" rx="8" fill="{PAPER}"/><defs>{defined}</defs>'
        f'<svg x="12" y="26" width="{width - 24:.0f}" height="{height - 24:.0f}" viewBox="0 -14 {width - 24:.0f} '
        f'{height - 24:.0f}"><g id="film">{"".join(uses)}</g></svg></svg>\n'
    )


def _row(cells: Cells, names: Sequence[tuple[str, str]]) -> str:
    parts, column = [], 0
    for text, colour, bold in cells:
        shown = text
        for path, name in names:
            shown = shown.replace(path, name)
        look = (f' fill="{colour}"' if colour != INK else "") + (' font-weight="bold"' if bold else "")
        parts.append(f'<tspan x="{column * CELL:.1f}"{look}>{escape(shown)}</tspan>')
        column += len(text)
    return "".join(parts)


def main(arguments: Sequence[str]) -> int:
    """Record the session and write the picture."""
    parser = argparse.ArgumentParser(prog="python -m tests.recording", description=__doc__)
    parser.add_argument("--prefix", type=Path, help="a healthy environment with torch (default: the demo's miniature)")
    parser.add_argument("--wheels", type=Path, help="directory with a wheel of another torchvision")
    parser.add_argument("--output", type=Path, default=TARGET)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="rec-", dir="/tmp") as name, ExitStack() as stack:
        folder = Path(name)
        variables = {"TERM": "xterm-256color", "COLUMNS": str(COLUMNS), "LINES": str(ROWS), "HOME": name}
        if options.prefix is None:
            case = build(folder / "vision")
            prefix, program, more = case.prefix, case.program, ["--no-gpu"]
            variables |= case.index_variables()
        else:
            # hard links need the file system of the environment
            place = options.prefix.absolute().parent / ".vision"
            stack.callback(shutil.rmtree, place, ignore_errors=True)
            room = copied(
                options.prefix.absolute(), place, options.wheels.absolute(), {"UV_CACHE_DIR": str(place / "uv")}
            )
            other_torch(room)
            prefix, program = room.prefix, place / "train.py"
            program.write_text(PROGRAM, encoding="utf-8")
            more = ["--offline", "--find-links", str(room.links.relative_to(place))]
        envmedic = str(Path(sys.executable).with_name("envmedic"))
        python, where = str(prefix / "bin" / "python"), ["-p", str(prefix)]
        recorder = Recorder(variables, program.parent)
        flags = " ".join(more)
        recorder.run(f"envmedic run -- python {program.name}", [envmedic, "run", *where, "--", python, str(program)])
        recorder.run(
            f"envmedic apply --last --yes {flags}".rstrip(), [envmedic, "apply", "--last", "--yes", *more, *where]
        )
        recorder.run(f"python {program.name}", [python, str(program)])
        recorder.run("envmedic undo --yes", [envmedic, "undo", "--yes", *where])
        names = ((str(prefix.parent), "~/vision"), (shlex.quote(str(program)), program.name), (name, "~"))
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(drawn(recorder.frames, names), encoding="utf-8")
    sys.stdout.write(
        f"{options.output}: {len(recorder.frames)} frames, {options.output.stat().st_size / 1000:.0f} kB\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
