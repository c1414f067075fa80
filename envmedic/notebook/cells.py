"""A cell of a notebook as a program by itself: which names it needs of other cells, and what imports bring them. Pure."""

from __future__ import annotations

import ast
import builtins
import symtable
from collections.abc import Sequence
from typing import NamedTuple

_LIKE_A_CELL = "import sys; sys.path[0] = ''"
"""A kernel finds modules in the working directory, a program in its own."""
_ALWAYS = frozenset({*dir(builtins), "__name__", "__doc__", "__builtins__"})


class CellProgram(NamedTuple):
    """The program of a cell, or why it has none."""

    source: str
    """Empty where it has none."""
    why_not: str = ""


def cell_program(cell: str, earlier: Sequence[str]) -> CellProgram:
    """Return `cell` after the imports of `earlier` cells that it needs; no program where it needs anything else of them."""
    try:
        needed = free_names(cell)
    except (SyntaxError, ValueError) as error:  # ValueError: a null character
        return CellProgram("", f"it is no program by itself ({error})")
    imports: list[str] = []
    bound: set[str] = set()
    for source in earlier:
        for statement in _imports(source):
            names = _bound(statement)
            if names & needed:
                imports.append(ast.unparse(statement))
                bound |= names
    missing = sorted(needed - bound)
    if "get_ipython" in missing:
        return CellProgram("", "it has lines that begin with % or !, which only IPython runs")
    if missing:
        named = ", ".join(missing[:3]) + (f" and {len(missing) - 3} more" if len(missing) > 3 else "")  # noqa: PLR2004
        return CellProgram("", f"it needs {named} of other cells; put what makes them into the cell")
    return CellProgram(_joined(cell, imports))


def free_names(source: str) -> frozenset[str]:
    """Names that `source` takes from outside. Raises SyntaxError where it is no module."""
    compile(source, "cell", "exec", dont_inherit=True)
    used: set[str] = set()
    made: set[str] = set()
    tables = [symtable.symtable(source, "cell", "exec")]
    while tables:
        table = tables.pop()
        tables += table.get_children()
        of_module = table.get_type() == "module"
        for symbol in table.get_symbols():
            if not (of_module or symbol.is_global()):
                continue
            if symbol.is_assigned() or symbol.is_imported():
                made.add(symbol.get_name())
            if symbol.is_referenced():
                used.add(symbol.get_name())
    return frozenset(used - made - _ALWAYS)


def _imports(source: str) -> list[ast.Import | ast.ImportFrom]:
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError):  # a cell that did not run either, or that awaits
        return []
    return [item for item in body if isinstance(item, (ast.Import, ast.ImportFrom))]


def _bound(statement: ast.Import | ast.ImportFrom) -> set[str]:
    whole = isinstance(statement, ast.Import)
    return {item.asname or (item.name.partition(".")[0] if whole else item.name) for item in statement.names}


def _joined(cell: str, imports: Sequence[str]) -> str:
    """The imports stand before the cell, and after what has to come first in a module."""
    future = [item for item in _imports(cell) if isinstance(item, ast.ImportFrom) and item.module == "__future__"]
    lines, end = cell.splitlines(), max((item.end_lineno or 0 for item in future), default=0)
    return "\n".join([*lines[:end], _LIKE_A_CELL, *imports, *lines[end:], ""])
