"""NVIDIA's libraries in an environment: what torch requires of them, what is there, and how to mend the difference."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import PurePosixPath

import msgspec
from packaging.markers import UndefinedEnvironmentName
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from envmedic.diagnosis.derived import Derived
from envmedic.model.facts import Distribution, Environment, Facts, FileConflict

_TOOLKIT = "cuda-toolkit"
"""The distribution whose extras require NVIDIA's wheels since CUDA 13."""
_MAJOR = re.compile(r"-cu(\d+)$")
_CUDA_SYMBOL = re.compile(r"_{0,2}(nccl|cu(blas|sparse|solver|dnn|fft|rand|da|pti|file)|nv(JitLink|rtc|tx|shmem))")
_NEEDS_CUDA = re.compile(
    r"(nvidia-.*|flash-attn|xformers|bitsandbytes|vllm|deepspeed|cupy-cuda\w+|mamba-ssm|causal-conv1d|auto-gptq"
    r"|autoawq|flashinfer(-python)?|onnxruntime-gpu|tensorrt(-cu\d+)?|nvdiffrast|spconv-cu\d+)"
)
"""Distributions that are of no use beside a build of torch for the CPU."""
_CUDA_LIBRARY = re.compile(r"lib(cudart|cublas|cudnn|nvrtc|cupti|nccl|cufft|curand|cusolver|cusparse|nvJitLink)\w*\.so")
_BLIND = frozenset({"ctranslate2", "onnxruntime-gpu"})
"""Programs that open CUDA's libraries by name and bring no search path to NVIDIA's wheels."""
_NOT_OF_TORCH = re.compile(r"nvidia-(ml-py|smi|pyindex|dali|modelopt|nat)")
_SYSTEMS = {"linux": "Linux", "darwin": "Darwin", "win32": "Windows"}


class _Wanted(msgspec.Struct, frozen=True):
    """A requirement that holds here."""

    name: str
    requirement: Requirement

    @property
    def text(self) -> str:
        """As an installer takes it."""
        extras = f"[{','.join(sorted(self.requirement.extras))}]" if self.requirement.extras else ""
        return f"{self.name}{extras}{self.requirement.specifier}"

    @property
    def exact(self) -> bool:
        """Whether it names one version."""
        return any(item.operator == "==" and "*" not in item.version for item in self.requirement.specifier)

    @property
    def of_nvidia(self) -> bool:
        """Whether it is about NVIDIA's libraries."""
        return self.name.startswith("nvidia-") or self.name == _TOOLKIT

    def accepts(self, version: str) -> bool:
        """Whether a version meets it; one that is no version does not."""
        try:
            return self.requirement.specifier.contains(Version(version), prereleases=True)
        except InvalidVersion:
            return False


class _Wheels(msgspec.Struct, frozen=True):
    """Requirements of torch on NVIDIA's wheels against what is installed."""

    missing: tuple[_Wanted, ...]
    wrong: tuple[tuple[_Wanted, Distribution], ...]


def derive(facts: Facts) -> Derived:
    """The facts of ``nvidia.*``, ``cudnn.*`` and those on torch's own libraries."""
    environment = facts.environment
    if environment is None:
        return {}
    derived = _loaded(environment) | _shadowed(facts, environment) | _elsewhere(facts, environment)
    derived["torch.cuda-wanted"] = _cuda_wanted(environment)
    torch = environment.distribution("torch")
    if torch is None:
        return derived
    if torch.owner == "conda":  # served by conda's libraries, which no wheel stands for
        return derived | {"nvidia.purge": (), "nvidia.repair": (), "nvidia.lacking": _lacking_of_conda(environment)}
    wanted = _wanted(facts, environment, torch)
    derived["torch.unmet"] = tuple(
        item.text for item in wanted if item.exact and not _met(item, environment) and item.name != _TOOLKIT
    )
    derived |= _libraries(environment, wanted)
    return derived | (_faults(derived) if environment.torch is not None and environment.torch.cuda else {})


def _faults(derived: Derived) -> Derived:
    """The three faults that the rest adds up to."""
    symbol = derived.get("torch.first-unresolved")
    mendable = bool(derived["nvidia.repair"])
    return {
        "nvidia.lacking": (
            *(f"{text} is not installed" for text in _strings(derived, "nvidia.missing")),
            *_strings(derived, "nvidia.damaged"),
        ),
        "nvidia.conflict": (
            *_strings(derived, "nvidia.wrong"),
            *_strings(derived, "nvidia.clobbered"),
            *((f"nothing defines {symbol}",) if symbol and mendable else ()),
        ),
        "cudnn.conflict": (*_strings(derived, "cudnn.wrong"), *_strings(derived, "cudnn.clobbered")),
    }


def _strings(derived: Derived, name: str) -> tuple[str, ...]:
    value = derived.get(name)
    return value if isinstance(value, tuple) else ()


def _wanted(facts: Facts, environment: Environment, torch: Distribution) -> tuple[_Wanted, ...]:
    """Requirements of torch that hold here, with those that they stand for, each once."""
    marker = _marker_environment(facts, environment)
    direct = list(_holding(torch.requires, marker))
    for item in direct:
        toolkit = environment.distribution(item.name) if item.name == _TOOLKIT else None
        if toolkit is not None:
            direct += _holding(toolkit.requires, marker, item.requirement.extras)
    return tuple({item.name: item for item in direct}.values())


def _holding(
    requires: Iterable[str], marker: Mapping[str, str], extras: Collection[str] | None = None
) -> Iterator[_Wanted]:
    """Those that hold; with `extras` those that one of them brings."""
    for text in requires:
        try:
            requirement = Requirement(text)
            if requirement.marker is None:
                holds = extras is None
            else:
                chosen = ("",) if extras is None else _named(extras, text)
                holds = any(requirement.marker.evaluate({**marker, "extra": extra}) for extra in chosen)
        except (InvalidRequirement, UndefinedEnvironmentName):
            continue  # a distribution's own mistake
        if holds:
            yield _Wanted(canonicalize_name(requirement.name), requirement)


def _named(extras: Iterable[str], text: str) -> Iterator[str]:
    """Those of `extras` that a requirement can be of: a toolkit has hundreds, each of one."""
    spelled = canonicalize_name(text)
    return (extra for extra in extras if canonicalize_name(extra) in spelled)


def _marker_environment(facts: Facts, environment: Environment) -> dict[str, str]:
    version = environment.interpreter.version or "3"
    return {
        "python_version": ".".join(version.split(".")[:2]),
        "python_full_version": version,
        "platform_system": _SYSTEMS.get(facts.host.system, ""),
        "sys_platform": facts.host.system,
        "platform_machine": facts.host.machine,
        "os_name": "nt" if facts.host.system == "win32" else "posix",
        "extra": "",
    }


def _copies(environment: Environment, name: str) -> tuple[Distribution, ...]:
    return tuple(item for item in environment.distributions if item.name == name)


def _met(wanted: _Wanted, environment: Environment) -> bool:
    return any(wanted.accepts(item.version) for item in _copies(environment, wanted.name))


def _compared(environment: Environment, wanted: tuple[_Wanted, ...]) -> _Wheels:
    unmet = [item for item in wanted if item.of_nvidia and not _met(item, environment)]
    installed = {item.name: _copies(environment, item.name) for item in unmet}
    missing = tuple(item for item in unmet if not installed[item.name])
    any_installed = any(_copies(environment, item.name) for item in wanted if item.of_nvidia)
    if not any_installed and not _lacking(environment):
        missing = ()  # installed without its requirements, and served by a toolkit of the host
    return _Wheels(missing, tuple((item, installed[item.name][0]) for item in unmet if installed[item.name]))


def _lacking(environment: Environment) -> tuple[str, ...]:
    return tuple(dict.fromkeys(item.soname for item in environment.cuda_libraries if item.path is None))


def _libraries(environment: Environment, wanted: tuple[_Wanted, ...]) -> Derived:
    wheels = _compared(environment, wanted)
    required = {item.name: item for item in wanted if item.of_nvidia}
    wrong = {wish.name: f"{found.name} {found.version} (torch requires {wish.text})" for wish, found in wheels.wrong}
    damaged, changed = _damaged(environment), _changed(environment)
    clobbered = _clobbered(environment, required)
    overwritten = tuple(text for texts in clobbered.values() for text in texts)
    broken = dict.fromkeys([*(item.name for item in wheels.missing), *wrong, *damaged, *changed, *clobbered])
    return {
        "nvidia.missing": tuple(item.text for item in wheels.missing),
        "nvidia.wrong": tuple(text for name, text in wrong.items() if "cudnn" not in name),
        "cudnn.wrong": tuple(text for name, text in wrong.items() if "cudnn" in name),
        "nvidia.damaged": tuple(text for texts in damaged.values() for text in texts),
        "nvidia.clobbered": tuple(text for text in overwritten if "/libcudnn" not in text),
        "cudnn.clobbered": tuple(text for text in overwritten if "/libcudnn" in text),
        "nvidia.majors": tuple(f"{item.name} {item.version}" for item in _other_majors(environment)),
        "nvidia.purge": (
            *(name for name in broken if environment.distribution(name) is not None),
            *_intruders(environment, clobbered),
        ),
        "nvidia.repair": tuple(_requirement(name, required, environment) for name in broken),
    }


def _requirement(name: str, required: Mapping[str, _Wanted], environment: Environment) -> str:
    """What torch requires; of a wheel that it does not require, the version that is there."""
    if name in required:
        return required[name].text
    installed = environment.distribution(name)
    return f"{name}=={installed.version}" if installed is not None else name


def _library(path: str) -> bool:
    return ".so" in PurePosixPath(path).suffixes


def _damaged(environment: Environment) -> dict[str, list[str]]:
    """Libraries of NVIDIA's wheels that are gone or end early, by distribution."""
    found: dict[str, list[str]] = {}
    for item in environment.files or ():
        lost = [*(f"{path} is gone" for path in item.missing), *(f"{path} is cut short" for path in item.cut_off)]
        libraries = [text for text in lost if _library(text.partition(" is ")[0])]
        if item.distribution.startswith("nvidia-") and libraries:
            found[item.distribution] = libraries
    return found


def _changed(environment: Environment) -> tuple[str, ...]:
    """NVIDIA's wheels with a library that is not the one that they brought."""
    return tuple(
        item.distribution
        for item in environment.files or ()
        if item.distribution.startswith("nvidia-") and any(map(_library, item.changed))
    )


def _clobbered(environment: Environment, required: Mapping[str, _Wanted]) -> dict[str, list[str]]:
    """Libraries of wheels that torch requires and that hold another wheel's content, by distribution."""
    found: dict[str, list[str]] = {}
    for conflict in environment.conflicts:
        for own, other in ((0, 1), (1, 0)):
            name = conflict.distributions[own]
            if name in required and conflict.distributions[other] not in required:
                texts = _overwritten(conflict, own, other)
                if texts:
                    found.setdefault(name, []).extend(texts)
    return found


def _overwritten(conflict: FileConflict, own: int, other: int) -> list[str]:
    libraries = [path for path in conflict.paths if _library(path)]
    if not libraries or conflict.content_of[own] == len(conflict.paths):
        return []
    whose = f"of {conflict.distributions[other]}" if conflict.content_of[other] else "of nobody known"
    return [f"{path} is that {whose}, not of {conflict.distributions[own]}" for path in libraries]


def _other_majors(environment: Environment) -> tuple[Distribution, ...]:
    """NVIDIA's wheels whose names say another major version of CUDA than torch's."""
    torch = environment.torch
    if torch is None or torch.cuda is None:
        return ()
    own = torch.cuda.partition(".")[0]
    majors = ((item, _MAJOR.search(item.name)) for item in environment.distributions if item.name.startswith("nvidia-"))
    return tuple(item for item, match in majors if match is not None and match[1] != own)


def _intruders(environment: Environment, clobbered: Mapping[str, list[str]]) -> tuple[str, ...]:
    """Wheels that overwrote torch's libraries and that nothing else needs, with those that need only them."""
    others = {item.name for item in _other_majors(environment)}
    guilty = {
        name
        for conflict in environment.conflicts
        for name in conflict.distributions
        if set(conflict.distributions) & clobbered.keys() and name not in clobbered
    } & others
    needed = {
        canonicalize_name(name)
        for item in environment.distributions
        if item.name not in others
        for name in _names(item.requires)
    }
    going = guilty - needed
    for item in environment.distributions:
        if item.name in others - needed and going & {canonicalize_name(name) for name in _names(item.requires)}:
            going.add(item.name)
    return tuple(sorted(going))


def _names(requires: Iterable[str]) -> Iterator[str]:
    for text in requires:
        match = re.match(r"[A-Za-z0-9][\w.-]*", text)
        if match is not None and "extra ==" not in text:
            yield match[0]


def _loaded(environment: Environment) -> Derived:
    """What the loader would do with torch's needs of CUDA."""
    own = [item for item in environment.libraries if item.distribution == "torch"]
    if environment.torch is None or not own or any(item.error for item in own):
        return {}
    missing = _lacking(environment)
    derived: Derived = {"torch.missing-libraries": missing}
    if missing:  # what is not there defines nothing
        return derived
    found = {symbol: item.soname for item in environment.cuda_libraries for symbol in item.unresolved}
    for library in own:
        name = PurePosixPath(library.path).name
        found = {item.symbol: name for item in library.unresolved if _of_cuda(item.symbol)} | found
    first = next(iter(found.items()), None)
    derived["torch.unresolved-symbols"] = len(found)
    derived["torch.first-unresolved"] = f"{first[0]}, which {first[1]} needs" if first else None
    return derived


def _lacking_of_conda(environment: Environment) -> tuple[str, ...]:
    """What conda's torch asks for of CUDA and does not find."""
    if environment.torch is None or not environment.torch.cuda:
        return ()
    missing = (item for item in environment.cuda_libraries if item.path is None)
    return tuple(dict.fromkeys(f"{item.soname}, which {item.needed_by or 'torch'} needs" for item in missing))


def _of_cuda(symbol: str) -> bool:
    return _CUDA_SYMBOL.match(symbol) is not None


def _shadowed(facts: Facts, environment: Environment) -> Derived:
    shadowed = [item for item in environment.cuda_libraries if item.instead_of is not None]
    variable = facts.variables().get("LD_LIBRARY_PATH")
    entries = re.split("[:;]", variable.value) if variable is not None else []
    hiding = {posixpath.dirname(posixpath.join(environment.prefix, item.path)) for item in shadowed if item.path}
    kept = [entry for entry in entries if entry and posixpath.normpath(entry) not in hiding]
    return {
        "nvidia.shadowed": tuple(f"{item.soname} from {item.path}, before {item.instead_of}" for item in shadowed),
        "cudnn.shadowed": tuple(item.soname for item in shadowed if item.soname.startswith("libcudnn_")),
        "nvidia.library-path": ":".join(kept),
    }


def _elsewhere(facts: Facts, environment: Environment) -> Derived:
    """What programs other than torch find of CUDA's libraries."""
    lacking = (
        f"{soname}, which {PurePosixPath(item.path).name} of {item.distribution or 'nobody known'} needs"
        for item in environment.extensions
        for soname in item.missing
        if _CUDA_LIBRARY.match(soname)
    )
    folders = _folders(environment)
    variable = facts.variables().get("LD_LIBRARY_PATH")
    entries = [entry for entry in re.split("[:;]", variable.value) if entry] if variable is not None else []
    unseen = bool(folders) and not set(folders) <= {posixpath.normpath(entry) for entry in entries}
    return {
        "nvidia.lacking-elsewhere": tuple(dict.fromkeys(lacking)),
        "nvidia.unseen": tuple(item.name for item in environment.distributions if unseen and item.name in _BLIND),
        "nvidia.library-folders": ":".join(dict.fromkeys([*folders, *entries])),
    }


def _folders(environment: Environment) -> tuple[str, ...]:
    """Where cuDNN's, cuBLAS's and the runtime's wheels of the environment have their libraries."""
    parts = {"cudnn": "cudnn", "cublas": "cublas", "cuda-runtime": "cuda_runtime"}
    found = (
        posixpath.join(environment.prefix, item.site, "nvidia", folder, "lib")
        for part, folder in parts.items()
        for item in environment.distributions
        if re.fullmatch(rf"nvidia-{part}-cu1[12]", item.name) and not item.outside_prefix
    )
    return tuple(dict.fromkeys(found))


def _cuda_wanted(environment: Environment) -> tuple[str, ...] | None:
    """Distributions that need a CUDA torch, and companions that are CUDA builds; None without any."""
    names = [
        item.name
        for item in environment.distributions
        if _NEEDS_CUDA.fullmatch(item.name) and not _NOT_OF_TORCH.match(item.name)
    ]
    names += [f"{item.name} {item.version}" for item in environment.companions if item.has_gpu_code]
    return tuple(names) or None
