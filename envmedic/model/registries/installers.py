"""Installers of wheels and of conda packages: the values of ``--installer``.

Nothing is imported here: the help of a command has these words without the rest of the model.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as in typing, which takes longer to load than help may
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Literal

    WheelInstaller = Literal["uv", "pip"]
    _CondaExecutor = Literal[
        "rattler", "conda"
    ]  # `model.conda.CondaExecutor`, which the decoder of plans needs at run time

OF_WHEELS: Mapping[WheelInstaller, str] = {"uv": "uv", "pip": "pip"}
"""Installers of wheels with their usual names; the first is the default."""
OF_CONDA: Mapping[_CondaExecutor, str] = {"rattler": "py-rattler", "conda": "conda"}
"""Installers of conda packages with their usual names."""
INSTALLERS = (*OF_WHEELS, *OF_CONDA)
DEFAULT: WheelInstaller = "uv"
DEFAULT_OF_CONDA: _CondaExecutor = "rattler"
