"""What a kernel asks and is answered, as JSON on the standard streams of ``envmedic notebook --answer``."""

from __future__ import annotations

from typing import Final, Literal

from envmedic.model.base import Model

CELL_SCHEMA: Final = "envmedic.cell/1"


class CellQuestion(Model, frozen=True, kw_only=True):
    """The last error of a kernel, or the failure of a cell that is to be kept as the case."""

    schema: Literal["envmedic.cell/1"]
    prefix: str
    """``sys.prefix`` of the kernel."""
    python: str
    """Its interpreter."""
    pid: int
    text: str
    """The traceback; empty where no cell has failed."""
    source: str | None = None
    """The Python of the cell, where it is to be kept."""
    earlier: tuple[str, ...] = ()
    """That of the cells before it."""
    seconds: float = 0.0
    """From the start of the cell to its failure."""
    modules: dict[str, str] = {}
    """Versions of what the kernel has loaded, by import names."""
    columns: int = 0
    """Width of a terminal that takes colours; 0 for other places."""
    detail: bool = False


class CellAnswer(Model, frozen=True, kw_only=True):
    """The answer in both forms."""

    schema: Literal["envmedic.cell/1"] = CELL_SCHEMA
    text: str
    html: str
