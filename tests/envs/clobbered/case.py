"""Builds the broken environments of this case from miniature wheels. See README.md."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.support.native_case import SUMMARY, NativeCase, build_native
from tests.support.venvs import install
from tests.support.wheels import Wheel, make_wheel

PROGRAM = "import viewer\n\nprint(viewer.show())\n"


def _view(directory: Path, name: str, *, window: bool) -> Wheel:
    """A distribution that brings the package `view`, with or without a window."""
    files = {
        "view/__init__.py": f'"""{SUMMARY}, by {name}."""\n\nfrom view.screen import show\n',
        "view/screen.py": f"KIND = {name!r}\n\n\ndef show():\n    return KIND\n",
    }
    if window:
        files["view/window.py"] = "def open_window():\n    return 'a window'\n"
        files["view/__init__.py"] += "from view.window import open_window\n"
    return make_wheel(directory, name, "4.0", files=files, summary=SUMMARY)


def build(room: Path, requires: Sequence[str] = ("view-full",)) -> NativeCase:
    """Build an environment in which ``view-lite`` was installed over the ``view-full`` that `viewer` asks for."""
    directory = room / "wheels"
    full, lite = _view(directory, "view-full", window=True), _view(directory, "view-lite", window=False)
    program = "import view\n\n\ndef show():\n    return f'{view.open_window()} by {view.show()}'\n"
    viewer = make_wheel(directory, "viewer", "1.0", files={"viewer.py": program}, requires=requires, summary=SUMMARY)
    case = build_native(room, [full, lite, viewer], ["view-full", "viewer"], PROGRAM)
    assert case.run().code == 0
    install(case.prefix, [lite])
    return case
