"""Code that Python runs at every start and that ends or cripples it, by its text alone."""

from __future__ import annotations

import ast
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from envmedic.model.facts import Defect
from envmedic.probe import layout
from envmedic.probe.layout import Layout
from envmedic.probe.packages.distributions import Scan
from envmedic.probe.prefix.import_paths import parse_pth, path_lines
from envmedic.probe.readable import names, read_bytes, read_text

_LARGEST = 1 << 20
_ENDS = frozenset({"exit", "quit", "_exit", "abort", "kill"})
_OF_OTHER_PYTHONS = frozenset({"asynchat", "asyncore", "distutils", "imp", "smtpd"})
"""Modules of the standard library that this process's Python may not have any more."""


def observe(found: Layout, scans: Sequence[Scan]) -> Iterator[Defect]:
    """Yield code that cannot be read as Python, ends the interpreter, hides modules, or imports what is gone."""
    yield from _ending(found.prefix, scans)
    # what the base Python's site-packages hold is not among `scans`
    if not found.includes_system_site:
        yield from _failing(found.prefix, scans)


def _ending(prefix: Path, scans: Sequence[Scan]) -> Iterator[Defect]:
    for scan in scans:
        for name in names(scan.site):
            path = scan.site / name
            if name in {"sitecustomize.py", "usercustomize.py"}:
                texts = [read_bytes(path, _LARGEST) or b""]
            elif name.endswith(".pth") and not name.startswith("."):
                texts = [
                    line.encode()
                    for line in parse_pth(read_text(path, _LARGEST) or "")
                    if line.startswith(("import ", "import\t"))
                ]
            else:
                continue
            wrong = next(filter(None, map(_wrong, texts)), None)
            if wrong is not None:
                yield Defect(kind="start-hook", path=layout.relative(path, prefix), detail=wrong)


def _failing(prefix: Path, scans: Sequence[Scan]) -> Iterator[Defect]:
    """Yield path files that import a module that is gone. Python reports that at every start, and goes on."""
    lines = {
        scan.site / name: path_lines(read_text(scan.site / name, _LARGEST) or "")
        for scan in scans
        for name in names(scan.site)
        if name.endswith(".pth") and not name.startswith(".")
    }
    known: set[str] | None = None
    for path, own in lines.items():
        imported = {name for line in own if line.startswith(("import ", "import\t")) for name in _imported(line)}
        if imported and known is None:
            known = _importable([*(scan.site for scan in scans), *_added(lines)])
        gone = sorted(imported - (known or set()))
        if gone:
            yield Defect(
                kind="path-file",
                path=layout.relative(path, prefix),
                distribution=_owner(path, scans),
                detail=f"imports {gone[0]}, which is gone",
            )


def _imported(line: str) -> Iterator[str]:
    """The top-level modules that a line of a path file imports, wherever in it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            nodes = list(ast.walk(ast.parse(line)))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return
    # what a line catches by itself is no failure
    if any(isinstance(node, ast.Try) for node in nodes):
        return
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (item.name.partition(".")[0] for item in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "__import__":
            yield from (str(item.value).partition(".")[0] for item in node.args[:1] if isinstance(item, ast.Constant))


def _importable(folders: Iterable[Path]) -> set[str]:
    own = {name.partition(".")[0] for folder in folders for name in names(folder)}
    return own | sys.stdlib_module_names | _OF_OTHER_PYTHONS


def _added(lines: dict[Path, tuple[str, ...]]) -> Iterator[Path]:
    """Directories that path files add."""
    yield from (path.parent / line for path, own in lines.items() for line in own if not line.startswith("import"))


def _owner(path: Path, scans: Sequence[Scan]) -> str | None:
    """The distribution whose list of files has a path file."""
    return next(
        (
            item.distribution.name
            for scan in scans
            if scan.site == path.parent
            for item in scan.installed
            if path.name in item.paths
        ),
        None,
    )


def _wrong(source: bytes) -> str | None:
    """What such code does at once that no program survives; None for all other code."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except (SyntaxError, ValueError) as error:
        return f"is no Python: {error}"
    except (RecursionError, MemoryError):
        return None
    return next(filter(None, map(_of_statement, tree.body)), None)


def _of_statement(statement: ast.stmt) -> str | None:
    # statements in a condition or a function may never run
    if isinstance(statement, ast.Raise):
        return "raises an error"
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        function = statement.value.func
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        return "ends the interpreter" if name in _ENDS else None
    if (
        isinstance(statement, ast.Assign)
        and isinstance(statement.value, ast.Constant)
        and statement.value.value is None
    ):
        hidden = [_hidden(target) for target in statement.targets]
        return next((f"hides the module {name}" for name in hidden if name), None)
    return None


def _hidden(target: ast.expr) -> str | None:
    """NAME of ``sys.modules["NAME"]``."""
    if not (isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant)):
        return None
    return str(target.slice.value) if ast.unparse(target.value) == "sys.modules" else None
