"""Every guard of the engine taken away in turn, in a copy, and the short tests nearest to it asked whether they see it.

    python -m tests.faults.guards [--list] [--only TEXT] [--share I/N] [--limit S] [--minutes M] [--resume FILE] [--again]
        [--passing FILE]

The guards are found in the source, not listed: syncs, locks, modes, owners, flags of opens and renames, comparisons that
raise, calls of functions that do nothing else, and writes of the journal, the record and the marker. Looked at are the
modules of the engine, those outside that they import and that touch the file system, and what else keeps state of the user's.

First the short tests run once with every guard in its place, which tell whom they pass (`tests.faults.passing`). Then each
guard is taken away, and the tests that pass it run: those in which it refuses something, then those that take least. Those of its file and nearest to it run
where none passes it: what is evaluated at import, and what nobody tests.
"""

from __future__ import annotations

import argparse
import ast
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import accumulate
from pathlib import Path

import msgspec

from tests import quick
from tests.cli.support import ROOT
from tests.faults.cases import Case
from tests.faults.passing import Passing, Place, marked, recorded
from tests.faults.tables import table

ENGINE = "envmedic.engine"
_KEEPING = frozenset({"envmedic.api.planning.cases"})
"""Modules outside of the engine that keep a user's files."""
_LIMIT_S = 120.0
"""Seconds that the tests of one guard take together while nothing is missing."""
_NOT_APART = 99
_READ_ONLY = f"""
for place in {shlex.join(dict.fromkeys([sys.base_prefix, sys.prefix, str(ROOT), "/usr", "/etc"]))}; do
    mount --bind "$place" "$place" && mount -o remount,bind,ro "$place" || exit {_NOT_APART}
done
exec "$@"
"""
"""Without a guard a test may follow a link out of its environment: as root, to the Python that all are made with."""
_FIRST = 4
"""Tests that are asked by themselves."""
_HANGS = 10
_LEAST_S = 240.0
"""What takes so many times as long, and at least so many seconds, hangs. What hangs is seen."""
_COPIED = ("envmedic", "tests", "playbooks", "docs", "pyproject.toml", "README.md")
_SLOW = ("tests/faults/", "tests/envs/", "tests/bench/", "tests/conda/", "tests/real/", "tests/gpu/", "tests/tui/")
"""Folders whose tests are not short."""
_MOST = 14
"""Test files for one guard."""
_WRITABLE_BY_ALL = "0o777"

KINDS = ("sync", "journal write", "mode", "owner and mode", "lock", "flag", "refusal", "comparison")
SYNCS = frozenset({"fsync", "fdatasync", "syncfs", "sync_directory", "sync_filesystem", "sync"})
LOCKS = frozenset({"flock", "lockf"})
OWNERS = frozenset({"chown", "fchown", "give", "chmod", "fchmod"})
HELD = frozenset({"locked", "held", "as_owner_of", "files_of"})
WRITES = frozenset({"move", "save", "write", "write_durably", "write_whole", "_save_fingerprint"})
WRITTEN = frozenset({"transaction", "run.transaction", "marker", "journals", "self", ""})
"""What `move`, `save` and `write` are called on where they write the state."""
FLAGS = frozenset({
    "O_NOFOLLOW", "O_EXCL", "O_DIRECTORY", "O_APPEND", "LOCK_NB", "RENAME_NOREPLACE", "RENAME_EXCHANGE",
    "RESOLVE_BENEATH", "RESOLVE_NO_SYMLINKS", "AT_SYMLINK_NOFOLLOW",
})  # fmt: skip

"""O_CLOEXEC is none of them: Python opens nothing that its children inherit, with it or without."""

_PRIVATE = "in the directory of the transaction, which nobody else enters, until the mode of the original follows"
_GONE = "right before the directory is removed"
_DIRECTORY = "what is no directory is refused by the next call all the same"
EQUIVALENT: dict[tuple[str, str, str], str] = {
    ("envmedic/engine/clone/clone.py", "mode", "target.mkdir(0o700)"): _PRIVATE,
    ("envmedic/engine/clone/directory_entries.py", "mode", "os.mkdir(name, 0o700, dir_fd=self._target)"): _PRIVATE,
    (
        "envmedic/engine/clone/directory_entries.py",
        "mode",
        "os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=self._target)",
    ): _PRIVATE,
    ("envmedic/engine/clone/directory_entries.py", "flag", "os.O_EXCL"): _PRIVATE,
    (
        "envmedic/engine/clone/clone.py",
        "flag",
        "os.link(old, new, src_dir_fd=opened[0], dst_dir_fd=opened[1], follow_symlinks=False)",
    ): _PRIVATE,
    (
        "envmedic/engine/clone/clone.py",
        "flag",
        'os.link(sample, place / "link", follow_symlinks=False)',
    ): "removed at once: only whether it can be made counts",
    (
        "envmedic/engine/clone/disk_space.py",
        "flag",
        "entry.stat(follow_symlinks=False)",
    ): "of a regular file; one that a link replaces meanwhile changes an estimate",
    (
        "envmedic/engine/fs/file_copy.py",
        "mode",
        "os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)",
    ): _PRIVATE,
    ("envmedic/engine/fs/durable.py", "flag", "os.O_NOFOLLOW"): "O_EXCL beside it follows no link either",
    ("envmedic/engine/clone/clone.py", "flag", "os.O_DIRECTORY"): _DIRECTORY,
    ("envmedic/engine/fs/exchange.py", "flag", "os.O_DIRECTORY"): "the parent of a path is a directory",
    ("envmedic/engine/transaction/create.py", "flag", "os.O_DIRECTORY"): "what is no directory is never removed there",
    ("envmedic/engine/generations/carry_over.py", "mode", "os.fchmod(directory, 0o700)"): _GONE,
    ("envmedic/engine/transaction/create.py", "mode", "Path(folder).chmod(0o700)"): _GONE,
}
"""File, kind and text of the guard → why nothing that a test can see depends on it."""


@dataclass(frozen=True, order=True)
class Guard:
    """One guard, and what its file is without it."""

    file: str
    """Relative to the repository."""
    line: int
    kind: str
    text: str
    """The guard, on one line."""
    start: int
    end: int
    """Where it stands in the file, in bytes."""
    instead: str
    runs: bool = True
    """In the body of a function, not evaluated at import."""

    @property
    def how(self) -> str:
        """How it is marked, see `passing.marked`."""
        if self.kind in {"comparison", "refusal"}:
            return "condition" if self.kind == "comparison" else "refusal"
        return "statement" if self.instead == "pass" else "value"

    @property
    def name(self) -> str:
        """For people, and to find it again."""
        return f"{self.file}:{self.line} {self.kind}: {self.text}"

    @property
    def key(self) -> tuple[str, str, str]:
        """As in `EQUIVALENT`: without the line, which moves."""
        return self.file, self.kind, self.text


def cases(folder: Path) -> Iterator[Case]:
    """Every guard that is not equivalent to none."""
    found = guards()

    @cache
    def copy() -> Copy:  # made for the first guard that is wanted: `--only` may want none
        return Copy(folder, passing_of(folder, found))

    for guard in found:
        if guard.key not in EQUIVALENT:
            yield f"guard: {guard.name}", partial(_missing, copy, guard)


def _missing(copy: Callable[[], Copy], guard: Guard) -> tuple[str, str]:
    judged = copy().without(guard)
    assert judged.caught, "no short test misses it"
    return "red", judged.by


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """What the tests said to a guard's absence."""

    kind: str
    file: str
    line: int
    text: str
    caught: bool
    by: str
    """The test that failed, or how the run ended."""
    seconds: float


def guards() -> list[Guard]:
    """Every guard of the engine and of what it uses: durability first, comparisons last, in the order of the files."""
    trees = {file: ast.parse((ROOT / file).read_bytes()) for file in sorted(_files())}
    refusing = {name for tree in trees.values() for name in _refusing(tree)}
    found = {guard for file, tree in trees.items() for guard in _guards(file, tree, refusing)}
    return sorted(found, key=lambda guard: (KINDS.index(guard.kind), guard))


def _files() -> Iterator[str]:
    """The modules of the engine, and the modules of other rooms that they import and that use `os` or its like."""
    graph = quick.graph()
    engine = {ENGINE, *graph.find_descendants(ENGINE)}
    used = {name for module in engine for name in graph.find_modules_directly_imported_by(module)} - engine
    for module in engine | used | _KEEPING:
        path = Path(*module.split("."))
        file = f"{path}.py" if (ROOT / f"{path}.py").exists() else f"{path}/__init__.py"
        if module in engine | _KEEPING or (
            module.startswith("envmedic.") and _touches_files(ast.parse((ROOT / file).read_bytes()))
        ):
            yield file


def _touches_files(tree: ast.AST) -> bool:
    """Whether a module opens, locks, renames or gives away files by calls of `os` or `fcntl`."""
    calls = {"open", "rename", "chown", "fchown", "chmod", "fchmod", "mkdir", "unlink", "flock", "scandir", "setfsuid"}
    return any(isinstance(node, ast.Attribute) and node.attr in calls for node in ast.walk(tree))


def _refusing(tree: ast.AST) -> Iterator[str]:
    """Functions that return nothing and raise where something does not hold."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and isinstance(node.returns, ast.Constant) and node.returns.value is None:
            last = node.body[-1]
            if any(isinstance(item, ast.Raise) for item in ast.walk(node)) and isinstance(last, (ast.If, ast.For)):
                yield node.name


def _guards(file: str, tree: ast.AST, refusing: set[str]) -> Iterator[Guard]:
    source = (ROOT / file).read_bytes()
    offsets = [0]
    for line in source.splitlines(keepends=True):
        offsets.append(offsets[-1] + len(line))

    def place(node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return offsets[node.lineno - 1] + node.col_offset, offsets[node.end_lineno - 1] + node.end_col_offset

    bodies = [(place(node.body[0])[0], place(node)[1]) for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    for kind, node, instead, whole in _absences(tree, refusing):
        start, end = place(node)
        runs = any(first <= start and end <= last for first, last in bodies)
        shown = source[slice(*place(whole))].decode()
        text = " ".join(shown.split())[:100]
        yield Guard(file, node.lineno, kind, text, start, end, _put(instead, source, place), runs)


def _put(instead: str | ast.expr, source: bytes, place: object) -> str:
    """What stands in the place of the guard: a text, or another part of the source."""
    return instead if isinstance(instead, str) else source[slice(*place(instead))].decode()  # type: ignore[operator]


_Absence = tuple[str, "ast.expr | ast.stmt", "str | ast.expr", "ast.expr | ast.stmt"]
"""Kind, what goes, what comes instead, and what is shown."""


def _absences(tree: ast.AST, refusing: set[str]) -> Iterator[_Absence]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            kind = _statement(node.value, refusing)
            if kind:
                yield kind, node, "pass", node
        elif isinstance(node, ast.If) and isinstance(node.body[-1], ast.Raise):
            yield "comparison", node.test, "False", node.test
        elif isinstance(node, ast.withitem) and isinstance(node.context_expr, ast.Call):
            if _called(node.context_expr)[1] in HELD:
                instead = "__import__('contextlib').nullcontext(0)"
                yield "lock", node.context_expr, instead, node.context_expr
        else:
            yield from _arguments(node)


def _arguments(node: ast.AST) -> Iterator[_Absence]:
    """Flags and modes in a call or a signature."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        for flag, other in ((node.right, node.left), (node.left, node.right)):
            if isinstance(flag, ast.Attribute) and flag.attr in FLAGS:
                yield "flag", node, other, flag
    elif isinstance(node, ast.Call):
        for item in node.keywords:
            if item.arg == "follow_symlinks" and isinstance(item.value, ast.Constant) and item.value.value is False:
                yield "flag", item.value, "True", node
        yield from _modes(node, [*node.args, *(item.value for item in node.keywords if item.arg == "mode")])
    elif isinstance(node, ast.FunctionDef):
        defaults = [item for item in (*node.args.defaults, *node.args.kw_defaults) if item is not None]
        yield from _modes(None, defaults)


def _statement(call: ast.Call, refusing: set[str]) -> str:
    """The kind of guard that a call for its effect alone is; "" for none."""
    on, name = _called(call)
    if name in SYNCS:
        return "sync"
    if name in LOCKS:
        return "lock"
    if name in OWNERS:
        return "owner and mode"
    if name in WRITES and (on in WRITTEN or name.startswith(("write_", "_save"))):
        return "journal write"
    return "refusal" if name in refusing else ""


def _called(call: ast.Call) -> tuple[str, str]:
    """What a function is called on, and its name."""
    if isinstance(call.func, ast.Attribute):
        return ast.unparse(call.func.value), call.func.attr
    return "", call.func.id if isinstance(call.func, ast.Name) else ""


def _modes(call: ast.Call | None, values: Iterable[ast.expr]) -> Iterator[_Absence]:
    """Permissions, as octal numbers or the argument `mode`."""
    for value in values:
        by_name = (
            call is not None
            and _called(call)[1].islower()
            and any(item.arg == "mode" and item.value is value for item in call.keywords)
        )
        octal = isinstance(value, ast.Constant) and value.value in {0o600, 0o644, 0o700, 0o755}
        if octal or by_name:
            yield "mode", value, _WRITABLE_BY_ALL, call or value


@cache
def _tests(file: str) -> tuple[str, ...]:
    """Short test files for a module, those that watch durability first, then those of few tests."""
    chosen = [test for test in quick.choice([file]) if not test.startswith(_SLOW)]
    # what is nearest by imports tests a module alone; whole repairs see the rest
    engine = [f"tests/engine/{path.name}" for path in sorted((ROOT / "tests" / "engine").glob("test_*.py"))]
    order = {
        name: number
        for number, name in enumerate(("durability", "journal", "lock", "hostile_owner", "interruption", "apply"))
    }

    def rank(test: str) -> tuple[bool, int, int]:
        return test not in chosen, order.get(Path(test).stem.removeprefix("test_"), len(order)), _size(test)

    return tuple(sorted({*chosen[:_MOST], *engine}, key=rank))


def _size(test: str) -> int:
    return (ROOT / test).stat().st_size


def copied(root: Path) -> Path:
    """Copy the product and its tests."""
    root.mkdir()
    for name in _COPIED:
        source = ROOT / name
        (shutil.copytree if source.is_dir() else shutil.copyfile)(source, root / name)
    return root


def passing_of(folder: Path, found: Sequence[Guard]) -> Passing:
    """Run the short tests once, in a copy whose guards tell that they run."""
    root = copied(folder / "marked")
    places: dict[str, list[Place]] = {}
    for number, guard in enumerate(found):
        if guard.runs:
            places.setdefault(guard.file, []).append((number, guard.start, guard.end, guard.how))
    for file, marks in places.items():
        (root / file).write_bytes(marked((root / file).read_bytes(), marks, root))
    tests = {test for file in {guard.file for guard in found} for test in _tests(file)}
    _pytest(root, sorted(tests), "-p", "tests.faults.passing", limit_s=None)
    return recorded(root, [guard.name for guard in found])


def _pytest(root: Path, tests: Iterable[str], *options: str, limit_s: float | None) -> tuple[int, str]:
    """Exit status and output of pytest in a copy. Raises TimeoutExpired, all its processes killed."""
    apart = ["unshare", "--mount", "--propagation=private", "sh", "-c", _READ_ONLY, "sh"] if os.geteuid() == 0 else []
    command = [*apart, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--no-header", "--tb=no"]
    surroundings = {**os.environ, "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": ""}
    with subprocess.Popen(
        [*command, *options, *tests], cwd=root, env=surroundings, start_new_session=True, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ) as run:  # fmt: skip
        try:
            said, _ = run.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            os.killpg(run.pid, signal.SIGKILL)
            run.wait()
            raise
    assert run.returncode != _NOT_APART, said
    return run.returncode, said


class Copy:
    """A copy of the product and its tests, broken in one place at a time."""

    def __init__(self, folder: Path, passing: Passing, limit_s: float = _LIMIT_S) -> None:
        self.root = copied(folder / "guarded")
        self._passing = passing
        self._limit_s = limit_s
        self._beside: dict[str, list[str]] = {}
        for name in passing.passed:
            self._beside.setdefault(name.partition(":")[0], []).append(name)

    def without(self, guard: Guard) -> Judged:
        """Take the guard away, ask the tests, and put it back."""
        file = self.root / guard.file
        source = file.read_bytes()
        broken = source[: guard.start] + guard.instead.encode() + source[guard.end :]
        started = time.monotonic()
        file.write_bytes(broken)
        try:
            ast.parse(broken)
            chosen = self._chosen(guard)
            # Nearly always one of the first says it, and pytest reads the files of all before it runs one.
            by = self._ask(chosen[:_FIRST]) or self._ask(chosen[_FIRST:])
        finally:
            file.write_bytes(source)
        return Judged(
            kind=guard.kind, file=guard.file, line=guard.line, text=guard.text, caught=bool(by), by=by,
            seconds=round(time.monotonic() - started, 1),
        )  # fmt: skip

    def _chosen(self, guard: Guard) -> list[str]:
        """The tests that pass the guard, or stand nearest to it, as many as the limit takes."""
        passing = self._passing
        chosen = passing.of([guard.name]) or passing.of(self._beside.get(guard.file, []))
        if not passing.passed.get(guard.name):
            files = _tests(guard.file)
            known = set(chosen)
            chosen += [
                test for file in files for test in passing.seconds if test.startswith(f"{file}::") and test not in known
            ]
        together = accumulate(passing.seconds[test] for test in chosen)
        return [test for test, seconds in zip(chosen, together, strict=True) if seconds <= self._limit_s] or chosen[:1]

    def _ask(self, tests: Sequence[str]) -> str:
        """The first test that fails, in this order; "" where none does."""
        if not tests:
            return ""
        usual = [self._passing.seconds[test] for test in tests]
        single = f"--timeout={max(_LEAST_S, _HANGS * max(usual)):.0f}"
        try:
            status, said = _pytest(self.root, tests, "-x", single, limit_s=max(_LEAST_S, _HANGS * sum(usual)))
        except subprocess.TimeoutExpired:
            return "hangs"
        if status == 0:
            return ""
        failed = [line for line in said.splitlines() if line.startswith(("FAILED", "ERROR"))]
        return failed[0].partition(" ")[2].partition(" - ")[0] if failed else f"pytest ends with {status}"


def main(arguments: Sequence[str]) -> int:
    """Take guards away, and print what the tests say. Returns 1 where one is missed by nobody."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.guards", description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="print the guards, and take none away")
    parser.add_argument("--only", default="", help="guards whose name has this in it")
    parser.add_argument("--share", default="0/1", help="I/N: the Ith of N processes, from 0")
    parser.add_argument("--limit", type=float, default=_LIMIT_S, help="seconds for the tests of one guard, undisturbed")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin none after that time")
    parser.add_argument("--resume", type=Path, help="what was tried is kept here, and not tried again")
    parser.add_argument("--again", action="store_true", help="try those again that were missed by nobody")
    parser.add_argument(
        "--passing", type=Path, help="which tests pass which guard: read, or written where it is missing"
    )
    options = parser.parse_args(arguments)
    found = [guard for guard in guards() if options.only in guard.name]
    if options.list:
        sys.stdout.writelines(f"{guard.name}\n" for guard in found)
        sys.stdout.writelines(f"{line}\n" for line in counted(found, []))
        return 0
    number, of = map(int, options.share.split("/"))
    until = time.monotonic() + 60 * options.minutes
    with tempfile.TemporaryDirectory(prefix="envmedic-guards-") as folder:
        Path(folder).chmod(0o755)  # tests become other users
        copy = Copy(Path(folder), _known_passing(options.passing, Path(folder)), options.limit)
        judged = [*judge(copy, found[number::of], options.resume, until=until, again=options.again)]
    sys.stdout.writelines(f"{line}\n" for line in counted(found, judged))
    return int(not all(item.caught for item in judged))


def _known_passing(file: Path | None, folder: Path) -> Passing:
    if file is not None and file.exists():
        return msgspec.json.decode(file.read_bytes(), type=Passing)
    passing = passing_of(folder, guards())
    if file is not None:
        file.write_bytes(msgspec.json.encode(passing))
    sys.stdout.writelines(f"fails with every guard in its place, and is not asked: {test}\n" for test in passing.failed)
    return passing


def judge(
    copy: Copy, found: Sequence[Guard], file: Path | None, *, until: float, again: bool = False
) -> Iterator[Judged]:
    """Take each guard away that was not before, and say what came of it."""
    known = earlier(file)
    for guard in found:
        item = known.get((guard.file, guard.kind, guard.text, guard.line))
        if item is None or (again and not item.caught):
            if guard.key in EQUIVALENT or time.monotonic() > until:
                continue
            item = copy.without(guard)
            if file is not None:
                with file.open("ab") as written:
                    written.write(msgspec.json.encode(item) + b"\n")
            sys.stdout.write(f"{'caught' if item.caught else 'MISSED'} {guard.name}  [{item.by}]\n")
            sys.stdout.flush()
        yield item


def earlier(file: Path | None) -> dict[tuple[str, str, str, int], Judged]:
    """What was tried before, the last time of each."""
    lines = file.read_bytes().splitlines() if file is not None and file.exists() else []
    items = [msgspec.json.decode(line, type=Judged) for line in lines]
    return {(item.file, item.kind, item.text, item.line): item for item in items}


def counted(found: Sequence[Guard], judged: Sequence[Judged]) -> Iterator[str]:
    """A line for each kind of guard."""
    there = Counter(guard.kind for guard in found)
    same = Counter(guard.kind for guard in found if guard.key in EQUIVALENT)
    tried = Counter(item.kind for item in judged)
    caught = Counter(item.kind for item in judged if item.caught)
    rows = [(kind, there[kind], same[kind], tried[kind], caught[kind]) for kind in sorted(there)]
    total = ("all", there.total(), same.total(), tried.total(), caught.total())
    yield from table(("guard", "in the source", "equivalent", "taken away", "caught"), [*rows, total])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
