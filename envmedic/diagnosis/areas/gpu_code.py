"""Facts on GPU code: what torch, its extensions and its run-time compiler offer for the visible GPUs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from envmedic.compat import gpu, tables, versions
from envmedic.compat.versions import dotted
from envmedic.diagnosis.areas.extensions import with_source
from envmedic.diagnosis.derived import Derived
from envmedic.model.facts import Environment, Facts, Host, Library, TorchBuild

_SHOWN_AS_PTX = "+PTX"


def derive(facts: Facts) -> Derived:
    """Facts of `model.vocabulary.kinds_gpu_code`; those on GPUs only where every compute capability is known."""
    environment = facts.environment
    build = environment.torch if environment is not None else None
    if environment is None or build is None or build.cuda is None:
        return {}
    # wheels carry NVRTC of torch's own CUDA release, so without a version of its own the build's is taken
    derived: Derived = {"torch.nvrtc": build.nvrtc or (build.cuda if build.nvrtc_builtins is not None else None)}
    if build.nvrtc_builtins is not None:
        derived["torch.nvrtc-builtins"] = build.nvrtc_builtins
    devices = capabilities(facts.host)
    if build.arch_list or build.ptx_list:
        derived["torch.gpu-code"] = _code(build.arch_list, build.ptx_list)
    return derived | (_against_gpus(devices, build, environment, facts.host) if devices else {})


def capabilities(host: Host) -> tuple[str, ...]:
    """Distinct compute capabilities of the visible GPUs; () where one is not known."""
    found = [gpu.compute_capability for gpu in host.visible_gpus()]
    known = [item for item in found if item is not None]
    return tuple(dict.fromkeys(known)) if len(known) == len(found) else ()


def _code(sass: Iterable[str], ptx: Iterable[str]) -> str:
    return ", ".join((*sass, *(item + _SHOWN_AS_PTX for item in ptx)))


def _against_gpus(devices: tuple[str, ...], build: TorchBuild, environment: Environment, host: Host) -> Derived:
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
    """The capabilities without usable machine code or PTX."""
    cuda, driver = build.cuda or "", _driver(host)
    missing = gpu.uncovered(gpu.BuildGpuCode(sass=sass, ptx=ptx, cuda=cuda, source=""), devices, driver)
    if driver or not ptx:
        return missing
    # the driver compiles PTX, and an old one refuses PTX of a newer CUDA; with no known driver a refusal would be a
    # guess, so every GPU from the oldest PTX on counts as served
    oldest = min(versions.capability(item) or (0, 0, "") for item in ptx)
    return tuple(item for item in missing if (versions.capability(item) or (0, 0, ""))[:2] < oldest[:2])


def _unknown_to_compiler(build: TorchBuild, devices: tuple[str, ...], host: Host) -> tuple[str, ...] | None:
    """The capabilities unknown to NVRTC; None where the tables do not have its release."""
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
    """Distributions with GPU code but none for some GPU: the first module of each, and the capabilities it lacks."""
    # a GPU that torch itself does not serve is a fault of torch, and would blame every extension
    served = set(devices) - set(_uncovered(build.arch_list, build.ptx_list, devices, build, host))
    modules: dict[str, list[Library]] = {}
    for item in environment.extensions:
        if item.sass or item.ptx:
            modules.setdefault(item.distribution or item.path, []).append(item)
    # a capability is missing only where all modules lack it: some distributions have one module per kind of GPU
    for group in modules.values():
        left = [set(_uncovered(item.sass, item.ptx, devices, build, host)) for item in group]
        missing = tuple(device for device in devices if device in served and all(device in one for one in left))
        if missing:
            yield group[0], missing
