"""What installs wheels, and what installs conda packages: the words of ``--installer``.

Nothing is imported here: the help of a command has these words without the rest of the model.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as in typing, which takes longer to load than help may
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Literal

    from envmedic.model.conda import CondaExecutor

    WheelInstaller = Literal["uv", "pip"]

OF_WHEELS: Mapping[WheelInstaller, str] = {"uv": "uv", "pip": "pip"}
"""Installers of wheels, each as people call it; the first is the default."""
OF_CONDA: Mapping[CondaExecutor, str] = {"rattler": "py-rattler", "conda": "conda"}
"""Installers of conda packages, likewise."""
INSTALLERS = (*OF_WHEELS, *OF_CONDA)
DEFAULT: WheelInstaller = "uv"
DEFAULT_OF_CONDA: CondaExecutor = "rattler"
