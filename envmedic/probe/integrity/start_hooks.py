"""Code that Python runs at every start and that ends or cripples it, by its text alone."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

from envmedic.model.facts import Defect
from envmedic.probe import layout
from envmedic.probe.packages.distributions import Scan
from envmedic.probe.prefix.import_paths import parse_pth
from envmedic.probe.readable import names, read_bytes, read_text

_LARGEST = 1 << 20
_ENDS = frozenset({"exit", "quit", "_exit", "abort", "kill"})


def observe(prefix: Path, scans: Sequence[Scan]) -> Iterator[Defect]:
    """Yield customisation modules and path files that cannot be read as Python, end the interpreter or hide modules."""
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
