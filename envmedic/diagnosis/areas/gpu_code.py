"""GPU code of torch and of its extensions, and torch's run-time compiler, held against the visible GPUs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from envmedic.compat import gpu, tables, versions
from envmedic.compat.versions import dotted
from envmedic.diagnosis.areas.extensions import with_source
from envmedic.diagnosis.derived import Derived
from envmedic.model.facts import Environment, Facts, Host, Library, TorchBuild

_SHOWN_AS_PTX = "+PTX"


def derive(facts: Facts) -> Derived:
    """The facts of `model.kinds_gpu_code`. What depends on GPUs is there only where all their kinds are known."""
    environment = facts.environment
    build = environment.torch if environment is not None else None
    if environment is None or build is None or build.cuda is None:
        return {}
    derived: Derived = {"torch.nvrtc": build.nvrtc or (build.cuda if build.nvrtc_builtins is not None else None)}
    if build.nvrtc_builtins is not None:
        derived["torch.nvrtc-builtins"] = build.nvrtc_builtins
    devices = capabilities(facts.host)
    if build.arch_list or build.ptx_list:
        derived["torch.gpu-code"] = _code(build.arch_list, build.ptx_list)
    return derived | (_held_against(devices, build, environment, facts.host) if devices else {})


def capabilities(host: Host) -> tuple[str, ...]:
    """Distinct compute capabilities of the visible GPUs; () where one is not known."""
    found = [gpu.compute_capability for gpu in host.visible_gpus()]
    known = [item for item in found if item is not None]
    return tuple(dict.fromkeys(known)) if len(known) == len(found) else ()


def _code(sass: Iterable[str], ptx: Iterable[str]) -> str:
    return ", ".join((*sass, *(item + _SHOWN_AS_PTX for item in ptx)))


def _held_against(devices: tuple[str, ...], build: TorchBuild, environment: Environment, host: Host) -> Derived:
    derived: Derived = {}
    if build.arch_list or build.ptx_list:
        derived["torch.gpu-code-missing"] = _uncovered(build.arch_list, build.ptx_list, devices, build, host)
    unknown = _unknown_to_compiler(build, devices, host)
    if unknown is not None:
        derived["torch.nvrtc-unknown"] = unknown
    return derived | _extensions(devices, build, environment, host)


def _driver(host: Host) -> tuple[int, ...]:
    return dotted(host.driver_version) if host.driver_version else ()


def _uncovered(
    sass: tuple[str, ...], ptx: tuple[str, ...], devices: tuple[str, ...], build: TorchBuild, host: Host
) -> tuple[str, ...]:
    """The capabilities that neither machine code nor PTX serves. With an unknown driver, PTX is given credit."""
    cuda, driver = build.cuda or "", _driver(host)
    missing = gpu.uncovered(gpu.BuildGpuCode(sass=sass, ptx=ptx, cuda=cuda, source=""), devices, driver)
    if driver or not ptx:
        return missing
    oldest = min(versions.capability(item) or (0, 0, "") for item in ptx)
    return tuple(item for item in missing if (versions.capability(item) or (0, 0, ""))[:2] < oldest[:2])


def _unknown_to_compiler(build: TorchBuild, devices: tuple[str, ...], host: Host) -> tuple[str, ...] | None:
    """The capabilities that NVRTC does not compile for, None where its release is not in the data."""
    toolkit = tables.toolkits().get(build.nvrtc or build.cuda or "")
    return None if toolkit is None else gpu.unknown_to_nvrtc(toolkit, devices, _driver(host))


def _extensions(devices: tuple[str, ...], build: TorchBuild, environment: Environment, host: Host) -> Derived:
    lacking = list(_lacking(devices, build, environment, host))
    names = dict.fromkeys(item.distribution or item.path for item, _ in lacking)
    owners = (environment.distribution(name) for name in names)
    return {
        "extensions.without-gpu-code": tuple(names),
        "extensions.gpu-code": tuple(
            f"{item.path} has code for {_code(item.sass, item.ptx)}, not for {', '.join(missing)}"
            for item, missing in lacking
        ),
        "extensions.gpu-code-rebuildable": with_source(item for item in owners if item is not None),
    }


def _lacking(
    devices: tuple[str, ...], build: TorchBuild, environment: Environment, host: Host
) -> Iterator[tuple[Library, tuple[str, ...]]]:
    """The distributions with GPU code, by a module of theirs, that have none for some GPU which torch itself serves.

    Several modules of one distribution share the work: some are for one kind of GPU only.
    """
    served = set(devices) - set(_uncovered(build.arch_list, build.ptx_list, devices, build, host))
    modules: dict[str, list[Library]] = {}
    for item in environment.extensions:
        if item.sass or item.ptx:
            modules.setdefault(item.distribution or item.path, []).append(item)
    for group in modules.values():
        left = [set(_uncovered(item.sass, item.ptx, devices, build, host)) for item in group]
        missing = tuple(device for device in devices if device in served and all(device in one for one in left))
        if missing:
            yield group[0], missing
