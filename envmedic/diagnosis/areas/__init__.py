"""Flat facts by area; `model.vocabulary` describes the names that each area derives."""

from __future__ import annotations

from collections.abc import Callable

from envmedic.diagnosis.areas import (
    conda_packages,
    consumer_libraries,
    extensions,
    file_damage,
    gpu_code,
    gpu_host,
    native,
    numpy_abi,
    nvidia,
    packages,
    program_files,
    runtimes,
    shell_variables,
    toolchain,
)
from envmedic.diagnosis.derived import Derived
from envmedic.model.facts import Facts

AREAS: tuple[Callable[[Facts], Derived], ...] = (
    extensions.derive,
    gpu_code.derive,
    runtimes.derive,
    file_damage.derive,
    gpu_host.derive,
    native.derive,
    nvidia.derive,
    consumer_libraries.derive,
    numpy_abi.derive,
    packages.derive,
    program_files.derive,
    toolchain.derive,
    conda_packages.derive,
    shell_variables.derive,
)
