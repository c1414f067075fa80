"""``make quick``: the test files nearest to what a branch changes, for every day; `make test` stays the judge of a branch.

Changed are files that differ from where the branch left main, committed or not. For a module these are the test files at
the fewest imports from it, where a step through a helper of the tests counts as none: the tests that import it, else those
that import a module that imports it, and so on. For another file (a playbook, a page) they are those that mention its
name; where nothing imports or mentions a file, those in a folder of tests named like one of its folders. Of more than `MOST` files those come first that are in a folder named like the module's package, then those that
import least. So the choice depends on the sources alone: no timings, no record of earlier runs.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import grimp

ROOT = Path(__file__).resolve().parents[1]
MOST = 25
"""Test files of one run: a minute and a half on two idle cores."""


def main(arguments: Sequence[str]) -> int:
    """Choose, say what was chosen, and run it. Returns pytest's exit code; 0 where nothing is changed."""
    parser = argparse.ArgumentParser(prog="python -m tests.quick", description=__doc__)
    parser.add_argument("--since", default="", metavar="REVISION", help="in the place of where the branch left main")
    parser.add_argument("--list", action="store_true", help="print the files and run none")
    options = parser.parse_args(arguments)
    files = changed(options.since or _git("merge-base", "HEAD", "main")[0])
    chosen = choice(files)
    left_out = f"; {len(chosen) - MOST} more are left to `make test`" if len(chosen) > MOST else ""
    sys.stdout.write(f"{len(files)} files changed, {len(chosen[:MOST])} test files nearest to them{left_out}\n")
    sys.stdout.write("".join(f"  {path}\n" for path in chosen[:MOST]))
    sys.stdout.flush()
    if options.list or not chosen:
        return 0
    workers = "auto" if len(chosen) > 1 else "0"
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", workers, *chosen[:MOST]], cwd=ROOT, check=False
    ).returncode


def changed(base: str) -> list[str]:
    """Paths of files that differ from `base`, and of new ones that git does not ignore."""
    return sorted({*_git("diff", "--name-only", base), *_git("ls-files", "--others", "--exclude-standard")})


def choice(files: Sequence[str]) -> list[str]:
    """The test files nearest to `files`, the most important first."""
    ranks: dict[str, tuple[bool, bool, int, str]] = {}
    for file in files:
        for test in nearest(file):
            elsewhere = not _beside(test, file)
            size = len(graph().find_modules_directly_imported_by(_module(test)))
            ranks[test] = min(ranks.get(test, (True, True, size, test)), (test != file, elsewhere, size, test))
    return sorted(ranks, key=ranks.__getitem__)


def nearest(file: str) -> list[str]:
    """The test files at the fewest steps from a changed file."""
    if Path(file).name == "conftest.py":
        return [test for test in _tests() if test.startswith(f"{Path(file).parent}/")]
    if _module(file) in graph().modules:
        found = list(_importing(_module(file)))
    else:
        name = Path(file).stem if Path(file).suffix == ".yaml" else Path(file).name
        found = [test for test in _tests() if name in (ROOT / test).read_text(encoding="utf-8")]
    return found or [test for test in _tests() if _beside(test, file)]


def _beside(test: str, file: str) -> bool:
    """Whether a folder of the test is named like one of the file's, or like a playbook."""
    return not {*Path(file).parts, Path(file).stem.replace("-", "_")}.isdisjoint(Path(test).parts[1:-1])


def _importing(module: str) -> Iterator[str]:
    """The test files at the fewest imports from `module`; itself, if it is one."""
    layer, seen = [module], {module}
    while layer:
        after: list[str] = []
        for name in layer:  # grows by the helpers of tests: no step
            for importer in sorted(graph().find_modules_that_directly_import(name) - seen):
                seen.add(importer)
                (layer if importer.startswith("tests.") else after).append(importer)
        found = [name for name in layer if name.rpartition(".")[2].startswith("test_")]
        if found:
            yield from (f"{name.replace('.', '/')}.py" for name in found)
            return
        layer = after


@cache
def graph() -> grimp.ImportGraph:
    """Who imports whom in envmedic and its tests, inside functions too."""
    return grimp.build_graph("envmedic", "tests", cache_dir=".import_linter_cache")


def _module(file: str) -> str:
    return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


@cache
def _tests() -> tuple[str, ...]:
    return tuple(sorted(str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py")))


def _git(*arguments: str) -> list[str]:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
