"""GPU code: whether GPUs run the machine code and PTX of a build, and kernels compiled at run time.

Pure functions over the tables; `torch_family.rules` uses them.
"""

from __future__ import annotations

import msgspec

from envmedic.compat import tables, versions
from envmedic.compat.table_rows import ToolkitRow


class BuildGpuCode(msgspec.Struct, frozen=True):
    """GPU code of a torch build."""

    sass: tuple[str, ...]
    ptx: tuple[str, ...]
    cuda: str
    source: str


def sass_runs(code: str, device: str, cuda: str) -> bool:
    """Whether machine code for `code`, built by toolkit `cuda`, runs on a GPU of capability `device`.

    Suffix ``a``: that capability alone; ``f``: the same and later minors of its major.
    """
    built, gpu = versions.capability(code), versions.capability(device)
    if built is None or gpu is None:
        return False
    if built[2] == "a":
        return built[:2] == gpu[:2]
    # the table has the exceptions to the rule that code runs on later minors of its major
    row = tables.sass_rows().get(code)
    if row is not None and row.devices_only is not None:
        return device in row.devices_only
    if row is not None and device in row.exclude and _excluded(row.exclude_until_cuda, cuda):
        return False
    return built[0] == gpu[0] and gpu[1] >= built[1]


def _excluded(until: str | None, cuda: str) -> bool:
    # a later toolkit made its machine code run on devices that earlier ones excluded
    return until is None or versions.dotted(cuda) <= versions.dotted(until)


def ptx_runs(code: str, device: str, *, toolkit: ToolkitRow | None, driver: tuple[int, ...]) -> bool:
    """Whether the driver can compile PTX for `code` on a GPU of capability `device`.

    The driver must be as new as the toolkit that produced the PTX: minor-version compatibility
    covers machine code only.
    """
    built, gpu = versions.capability(code), versions.capability(device)
    if built is None or gpu is None or not compiles_ptx(toolkit, driver):
        return False
    if built[2] == "a":
        return built[:2] == gpu[:2]
    # family-specific PTX, new with CUDA 12.9, uses features that later majors may lack
    if built[2] == "f":
        return built[0] == gpu[0] and gpu[1] >= built[1]
    return gpu[:2] >= built[:2]


def compiles_ptx(toolkit: ToolkitRow | None, driver: tuple[int, ...]) -> bool:
    """Whether the driver is known to be as new as the toolkit."""
    # an unknown driver counts as too old: PTX that the driver cannot compile fails only when the first kernel starts
    if toolkit is None or toolkit.driver_linux is None or not driver:
        return False
    return driver >= versions.dotted(toolkit.driver_linux)


def uncovered(code: BuildGpuCode, devices: tuple[str, ...], driver: tuple[int, ...]) -> tuple[str, ...]:
    """Return the capabilities among `devices` that run neither machine code nor PTX of the build."""
    toolkit = tables.toolkits().get(code.cuda)
    return tuple(
        device
        for device in devices
        if not any(sass_runs(item, device, code.cuda) for item in code.sass)
        and not any(ptx_runs(item, device, toolkit=toolkit, driver=driver) for item in code.ptx)
    )


def nvrtc_knows(toolkit: ToolkitRow, device: str) -> bool:
    """Whether that toolkit's NVRTC compiles for `device`: its own list, else the range of nvcc."""
    # a list of NVRTC itself is exact; where no source gives one, nvcc's range is the best estimate
    if toolkit.nvrtc is not None:
        return device in toolkit.nvrtc
    gpu, low, high = (versions.capability(text) for text in (device, toolkit.nvcc_min, toolkit.nvcc_max))
    return gpu is not None and low is not None and high is not None and low[:2] <= gpu[:2] <= high[:2]


def nvrtc_clamp(toolkit: ToolkitRow, device: str) -> str | None:
    """Return the capability that torch passes to an older NVRTC instead of `device`, or None."""
    cuda, gpu = versions.dotted(toolkit.cuda), versions.capability(device)
    for row in tables.cuda_tables().nvrtc_clamps:
        limit = versions.capability(row.clamp)
        if versions.dotted(row.first) <= cuda <= versions.dotted(row.last) and gpu and limit and gpu[:2] > limit[:2]:
            return row.clamp
    return None


def unknown_to_nvrtc(toolkit: ToolkitRow, devices: tuple[str, ...], driver: tuple[int, ...]) -> tuple[str, ...]:
    """Return the capabilities for which run-time compilation fails.

    Where torch clamps the capability, it compiles to PTX, for which the driver must be new enough.
    An unknown driver does not count against the build.
    """
    return tuple(
        device
        for device in devices
        if not nvrtc_knows(toolkit, device)
        # unlike for coverage: most programs compile nothing at run time, so a doubt must not exclude a build
        and not (nvrtc_clamp(toolkit, device) and (not driver or compiles_ptx(toolkit, driver)))
    )
