"""Operations of the helper, by name."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

Operation = Callable[[dict[str, Any]], dict[str, Any]]


def _of(module: str, function: str) -> Operation:
    """A function of a module of this package, imported on the first call: each needs other libraries."""

    def operation(request: dict[str, Any]) -> dict[str, Any]:
        found: Operation = getattr(import_module(f"envmedic.installers.conda.helper.{module}"), function)
        return found(request)

    return operation


OPERATIONS: Final[dict[str, Operation]] = {
    "solve": _of("solving", "solve"),
    "fetch": _of("fetching", "fetch"),
    "scripts": _of("archives", "scripts"),
    "about": _of("archives", "about"),
    "place": _of("placing", "place"),
    "stock": _of("archives", "stock"),
    "finish": _of("finishing", "finish"),
}
