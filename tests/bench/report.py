"""What was measured, printed as it comes and written as tables in the end."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from tests.bench.sampling import Samples, ratio

_QUIET = 0.5
"""Load per core, before the run adds its own, above which figures are doubtful."""
_GIGABYTE = 1e9


@dataclass(frozen=True)
class Aim:
    """What a ratio should be."""

    value: float
    at_least: bool = False

    def verdict(self, measured: float) -> str:
        """The aim and whether it is met."""
        met = measured >= self.value if self.at_least else measured <= self.value
        return f"aim {'≥' if self.at_least else '≤'} {self.value:g} x: {'met' if met else 'NOT met'}"


@dataclass
class Report:
    """Sections with their measures and ratios; what is added is printed at once."""

    lines: list[str] = field(default_factory=list)
    """The same as Markdown."""
    _table: str = ""

    def section(self, title: str) -> None:
        """Begin a section."""
        self._end_table()
        _say(f"\n{title}")
        self.lines += [f"## {title}", ""]

    def note(self, text: str) -> None:
        """A sentence below the title."""
        self._end_table()
        _say(f"  {text}")
        self.lines += [text, ""]

    def show(self, samples: Samples, names: dict[str, str]) -> None:
        """Median, least and greatest of each measure that was taken."""
        for name, words in names.items():
            if name not in samples:
                continue
            taken = samples[name]
            middle, least, most = median(taken), min(taken), max(taken)
            _say(f"  {words:<44} {middle:7.3f} s  [{least:.3f} to {most:.3f}, n={len(taken)}]")
            self._row(
                ("measure", "median", "least", "greatest", "samples"),
                (words, f"{middle:.3f} s", f"{least:.3f} s", f"{most:.3f} s", str(len(taken))),
            )

    def compare(self, samples: Samples, name: str, base: str, words: str, aim: Aim | None = None) -> None:
        """One ratio of medians, with the spread over the rounds; nothing where one of them was not taken."""
        if name not in samples or base not in samples:
            return
        found = ratio(samples, name, base)
        verdict = aim.verdict(found.value) if aim else ""
        _say(f"  {words:<44} {found.value:7.2f} x  [{found.low:.2f} to {found.high:.2f}]  {verdict}".rstrip())
        cells = (words, f"{found.value:.2f} x", f"{found.low:.2f} x", f"{found.high:.2f} x", verdict)
        self._row(("ratio", "of medians", "least", "greatest", "aim"), cells)

    def table(self, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Rows of their own kind."""
        widths = [max(len(cell) for cell in column) for column in zip(head, *rows, strict=True)]
        for row in (head, *rows):
            _say("  " + "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)))
        for row in rows:
            self._row(head, row)

    def markdown(self) -> str:
        """All of it as a page."""
        self._end_table()
        return "\n".join(self.lines)

    def _row(self, head: Sequence[str], cells: Sequence[str]) -> None:
        if self._table != head[0]:
            self._end_table()
            self.lines += [_cells(head), _cells("---" if number == 0 else "---:" for number in range(len(head)))]
            self._table = head[0]
        self.lines.append(_cells(cells))

    def _end_table(self) -> None:
        if self._table:
            self.lines.append("")
        self._table = ""


def _cells(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def machine() -> str:
    """The machine in words: what the figures depend on."""
    known = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    model = next((line.partition(":")[2].strip() for line in known.splitlines() if line.startswith("model name")), "")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / _GIGABYTE
    kernel = ".".join(platform.release().split(".")[:2])
    cores = f"{os.cpu_count()} cores" + (f" of {model}" if model else "")
    return f"{cores}, {memory:.0f} GB of memory, Linux {kernel}, Python {platform.python_version()}"


def load() -> str:
    """The load, with a warning where it spoils the figures."""
    now = os.getloadavg()[0]
    busy = now > _QUIET * (os.cpu_count() or 1)
    return f"load {now:.2f}" + (" — WARNING: other work runs, the figures are doubtful" if busy else "")


def _say(text: str) -> None:
    """One line, at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
