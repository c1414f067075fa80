"""``python -m tests.bench.diagnosis``: how well texts alone are diagnosed, over a corpus of labelled reports.

The corpus is a file of JSON lines with the keys ``id``, ``fault`` (a class, or null where no
environment is at fault), ``text`` and ``bare`` (a line that several causes share: not judged). It is
no part of the project; ``ENVMEDIC_CORPUS`` names it.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from envmedic.api import diagnosis
from envmedic.api.context.settings import Settings
from envmedic.diagnosis.candidates import CERTAIN_ENOUGH
from envmedic.model.events import EventStream
from envmedic.model.findings import Diagnosis

ROOT = Path(__file__).resolve().parents[2]
CORPUS = ROOT.parent / "shared" / "corpus" / "reports.jsonl"
FIRST_AIM, THREE_AIM, CLAIM_AIM = 0.92, 0.97, 0.05
_SHOWN_CHARACTERS = 160
_MOST_CONFUSIONS = 30


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a report that are judged."""

    id: str
    fault: str | None
    text: str | None
    bare: bool = False


@dataclass(frozen=True)
class Judged:
    """A report with what was made of it."""

    report: Report
    diagnosis: Diagnosis

    @property
    def faults(self) -> list[str]:
        """Classes of the findings, best first."""
        return [finding.fault for finding in self.diagnosis.findings]

    @property
    def claimed(self) -> bool:
        """Whether any finding is sure enough to be acted on."""
        return any(finding.confidence >= CERTAIN_ENOUGH for finding in self.diagnosis.findings)

    @property
    def right(self) -> bool:
        """Whether the first finding has the report's fault; without one, whether nothing is claimed."""
        return not self.claimed if self.report.fault is None else self.faults[:1] == [self.report.fault]

    @property
    def among_three(self) -> bool:
        """Whether one of the first three findings has the report's fault."""
        return self.report.fault in self.faults[:3]


def main(arguments: Sequence[str]) -> int:
    """Judge every report and print; skipped where there is no corpus."""
    options = _parse(arguments)
    if not options.corpus.is_file():
        _say(f"skipped: there is no corpus at {options.corpus}; name one with ENVMEDIC_CORPUS")
        return 0
    started = time.perf_counter()
    judged = judge(read(options.corpus))
    seconds = time.perf_counter() - started
    _print_figures(judged)
    _print_classes(judged)
    _print_confusions(judged)
    if options.verbose:
        _print_misses(judged, options.fault)
    _say(f"\n{len(judged)} texts in {seconds:.1f} s")
    return 0


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.diagnosis")
    stated = Path(os.environ.get("ENVMEDIC_CORPUS") or CORPUS)
    parser.add_argument("corpus", type=Path, nargs="?", default=stated, help="JSON lines (ENVMEDIC_CORPUS)")
    parser.add_argument("-v", "--verbose", action="store_true", help="list the misses")
    parser.add_argument("--fault", help="list those of one class only, by label or by finding; `none` for no fault")
    return parser.parse_args(arguments)


def read(corpus: Path) -> list[Report]:
    """The reports that are judged: those with a text that several causes do not share."""
    reports = [msgspec.json.decode(line, type=Report) for line in corpus.read_bytes().splitlines() if line.strip()]
    return [report for report in reports if report.text and not report.bare]


def judge(reports: Sequence[Report]) -> list[Judged]:
    """Diagnose each text as ``envmedic diagnose --log-only`` with all of them as files does."""
    with tempfile.TemporaryDirectory() as folder:
        logs = [Path(folder) / f"{number}.log" for number in range(len(reports))]
        for log, report in zip(logs, reports, strict=True):
            log.write_text(report.text or "", encoding="utf-8")
        found = diagnosis.diagnose(Settings(stream=EventStream([])), None, [str(log) for log in logs])
    return [Judged(report, diagnosis) for report, diagnosis in zip(reports, found, strict=True)]


def _print_figures(judged: Sequence[Judged]) -> None:
    faulty = [item for item in judged if item.report.fault is not None]
    healthy = [item for item in judged if item.report.fault is None]
    _share("fault of the first finding right", sum(item.right for item in faulty), len(faulty), FIRST_AIM)
    _share("among the first three", sum(item.among_three for item in faulty), len(faulty), THREE_AIM)
    _share("no fault, and one claimed", sum(item.claimed for item in healthy), len(healthy), CLAIM_AIM, at_most=True)


def _share(what: str, count: int, total: int, aim: float, *, at_most: bool = False) -> None:
    share = count / total if total else 0.0
    met = share <= aim if at_most else share >= aim
    sign = "≤" if at_most else "≥"
    _say(f"{what:34} {count:4} of {total:4}  {share:6.1%}  aim {sign} {aim:.0%}: {'met' if met else 'NOT met'}")


def _print_classes(judged: Sequence[Judged]) -> None:
    _say(f"\n{'class':28} {'texts':>5} {'first':>6} {'three':>6}")
    for name in sorted({item.report.fault or "none" for item in judged}):
        own = [item for item in judged if (item.report.fault or "none") == name]
        three = "" if name == "none" else str(sum(item.among_three for item in own))
        _say(f"{name:28} {len(own):5} {sum(item.right for item in own):6} {three:>6}")


def _print_confusions(judged: Sequence[Judged]) -> None:
    missed = Counter(
        (item.report.fault or "none", (item.faults or ["nothing"])[0]) for item in judged if not item.right
    )
    if missed:
        _say("\nlabelled                     → found")
    for (label, found), count in missed.most_common(_MOST_CONFUSIONS):
        _say(f"{label:28} → {found:28} {count:3}")


def _print_misses(judged: Sequence[Judged], fault: str | None) -> None:
    for item in judged:
        label = item.report.fault or "none"
        if item.right or (fault and fault not in {label, *item.faults[:1]}):
            continue
        found = ", ".join(f"{f.fault}/{f.signature} {f.confidence:g}" for f in item.diagnosis.findings[:3])
        _say(f"\n{item.report.id}: {label} → {found or item.diagnosis.verdict}")
        _say(f"  {' '.join((item.report.text or '').split())[:_SHOWN_CHARACTERS]}")


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
