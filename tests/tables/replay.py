"""What tables of a former day would have answered about the next release of torch: ``make replay-tables``.

Record and documents are cut off at a release of torch. The next one is then asked about as on its first day: what the
default index and its own wheel say of it counts, documents about it do not.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from envmedic.compat import couplings, tables, versions
from envmedic.compat.torch_family.rules import PLATFORMS, Build, check_torch
from envmedic.compat.torch_family.target import target_of
from envmedic.model.answers.family import FamilyQuery
from tests.tables import documents, making, record
from tests.tables.documents import Documents, Row, Span
from tests.tables.record import Record

RELEASES = 8
PAGE = Path(__file__).parents[2] / "docs" / "tables.md"
_BEGIN, _END = "<!-- replay -->", "<!-- end of replay -->"
Answers = dict[tuple[str, str], object]
"""Kind and text of a question → answer."""
KINDS = ("requirements", "pythons", "default", "driver", "gpu", "build by Python")
_FITS = ("driver", "gpu", "build by Python")
"""Kinds whose answer is whether a build fits."""


class Result(msgspec.Struct):
    """What came out for one release."""

    torch: str
    cut: str
    right: Counter[str]
    asked: Counter[str]
    apart: int
    """Builds that only another index tells of, whose files nobody has recorded."""
    wrong: list[str]
    wrong_fits: int


def replay() -> list[Result]:
    """Ask about each of the last releases what the tables before it would have answered."""
    full, told = record.load(), documents.load()
    names = [row.version for row in full.of("torch")]
    with _in_use(making.files(full, told)):
        truths = {torch: _answers(torch, _builds(torch)) for torch in names[-RELEASES:]}
        builds = {torch: _builds(torch) for torch in names[-RELEASES:]}
    results = []
    for torch in names[-RELEASES:]:
        at = names.index(torch)
        later = next((row.uploaded for row in full.of("torch") if row.version in names[at + 1 : at + 2]), None)
        with _in_use(making.files(_known_before(full, later), _written_before(told, names[at - 1]))):
            there = [place for place in builds[torch] if place in set(_builds(torch))]
            answers = _answers(torch, there)
        results.append(_compared(torch, names[at - 1], truths[torch], answers, len(builds[torch]) - len(there)))
    return results


def _compared(torch: str, cut: str, truth: Answers, answers: Answers, apart: int) -> Result:
    found = Result(torch, cut, Counter(), Counter(), apart, [], 0)
    for (kind, text), answer in answers.items():
        found.asked[kind] += 1
        if answer == truth[kind, text]:
            found.right[kind] += 1
        else:
            found.wrong.append(f"{kind}: {text}: {answer}, and not {truth[kind, text]}")
            found.wrong_fits += kind in _FITS and answer is True
    return found


def _known_before(full: Record, later: str | None) -> Record:
    """What indexes and wheels said before the day `later`."""
    day = later or "9999"
    rows = tuple(row for row in full.releases if row.uploaded is None or row.uploaded < day)
    return msgspec.structs.replace(full, releases=rows)


def _written_before(told: Documents, cut: str) -> Documents:
    """The documents as of a release of torch: nothing about later releases, nor about toolkits that none was built for."""
    last = versions.parsed(cut)
    spans = tuple(_until(span, cut) for span in told.variants if versions.parsed(span.first) <= last)
    conda: tuple[Row, ...] = tuple(
        {**row, "last": cut} for row in told.conda if versions.parsed(str(row["first"])) <= last
    )
    return msgspec.structs.replace(
        told,
        variants=spans,
        conda=conda,
        toolkits=tuple(row for row in told.toolkits if versions.dotted(str(row["cuda"])) <= _newest_cuda(cut)),
        unstated=tuple(row for row in told.unstated if versions.parsed(row.first) <= last),
    )


def _newest_cuda(cut: str) -> tuple[int, ...]:
    rows = (row for row in making.torch_file(record.load(), documents.load()).variants if row.cuda)
    before = (row for row in rows if versions.parsed(row.torch) <= versions.parsed(cut))
    return max(versions.dotted(row.cuda or "") for row in before)


def _until(span: Span, cut: str) -> Span:
    return msgspec.structs.replace(span, last=min(span.last, cut, key=versions.parsed))


@contextmanager
def _in_use(files: dict[str, str]) -> Iterator[None]:
    """Let envmedic read these tables instead of its own."""
    shipped = tables._DATA
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files.items():
            Path(folder, name).write_text(content, encoding="utf-8")
        try:
            tables._DATA = Path(folder)
            _forget()
            yield
        finally:
            tables._DATA = shipped
            _forget()


def _forget() -> None:
    for module in (tables, couplings):
        for value in vars(module).values():
            if hasattr(value, "cache_clear"):
                value.cache_clear()


def _builds(torch: str) -> list[tuple[Build, str]]:
    """The builds of a release with the platforms that the tables tell of, or leave to the index."""
    rows = (row for row in tables.torch_tables().variants if row.torch == torch)
    return [
        (Build(torch, row.variant), platform)
        for row in rows
        for platform in PLATFORMS
        if row.platforms is None or platform in row.platforms
    ]


def _answers(torch: str, builds: Iterable[tuple[Build, str]]) -> Answers:
    """Every row of the tables about a release, as answers."""
    row = tables.releases()[torch]
    found: Answers = {
        ("requirements", name): getattr(row, name)
        for name in ("requires_python", "triton", "triton_marker", "torchvision", "torchaudio")
    }
    for platform in PLATFORMS:
        wheels = tables.python_wheels().get((torch, platform))
        found["pythons", platform] = wheels and wheels.python
        found["default", platform] = tables.default_wheels()[torch].variants.get(platform)
    for build, platform in builds:
        for question, query in _grid(build, platform):
            found[question] = all(ruling.ok for ruling in check_torch(build, target_of(query)))
    return found


def _grid(build: Build, platform: str) -> Iterator[tuple[tuple[str, str], FamilyQuery]]:
    """Yield the questions about a build on a platform: each driver, each GPU and each Python."""
    drivers = sorted({row.driver_linux for row in _TOOLKITS if row.driver_linux}, key=versions.dotted)
    machine = platform.removeprefix("linux_")
    where = f"{build.variant} on {machine}, "
    usual = FamilyQuery(
        python="3.12", machine=machine, driver=drivers[-1], capabilities=("9.0",), ask_index=True, members=("torch",)
    )
    for driver in drivers:
        yield ("driver", where + driver), msgspec.structs.replace(usual, driver=driver)
    for row in _CAPABILITIES:
        yield ("gpu", where + row.cc), msgspec.structs.replace(usual, capabilities=(row.cc,))
    for minor in range(8, 17):
        yield ("build by Python", f"{where}3.{minor}"), msgspec.structs.replace(usual, python=f"3.{minor}")


_TOOLKITS = tables.cuda_tables().toolkits
_CAPABILITIES = tables.arch_tables().capabilities


def table(results: Iterable[Result]) -> str:
    """Return the results as a table of Markdown."""
    lines = ["| asked about | tables until | " + " | ".join(KINDS) + " | builds apart | wrong “fits” |"]
    lines.append("| --- " * (len(KINDS) + 4) + "|")
    everything = Result("all", "", Counter(), Counter(), 0, [], 0)
    for row in results:
        lines.append(_line(row))
        everything.right += row.right
        everything.asked += row.asked
        everything.apart += row.apart
        everything.wrong_fits += row.wrong_fits
    return "\n".join([*lines, _line(everything)])


def _line(row: Result) -> str:
    cells = [f"{row.right[kind]} of {row.asked[kind]}" for kind in KINDS]
    return f"| {row.torch} | {row.cut} | " + " | ".join(cells) + f" | {row.apart} | {row.wrong_fits} |"


def main() -> int:
    """Write the table into the page; 1 where it is not good enough."""
    results = replay()
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(_BEGIN)
    PAGE.write_text(f"{before}{_BEGIN}\n\n{table(results)}\n\n{_END}{rest.partition(_END)[2]}", encoding="utf-8")
    for row in results:
        sys.stdout.write("".join(f"{row.torch}: {text}\n" for text in row.wrong))
    sys.stdout.write(table(results) + "\n")
    right, asked = sum(row.right.total() for row in results), sum(row.asked.total() for row in results)
    sys.stdout.write(f"{right} of {asked} right, {sum(row.wrong_fits for row in results)} wrong fits\n")
    return int(right < 0.95 * asked or any(row.wrong_fits for row in results))


if __name__ == "__main__":
    sys.exit(main())
