"""NVIDIA's wheels against torch's requirements: missing, wrong, damaged and overwritten ones."""

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

from envmedic.model.facts import Distribution, Environment, Facts, FileConflict, Host

TOOLKIT = "cuda-toolkit"
"""The distribution whose extras require NVIDIA's wheels since CUDA 13."""
_MAJOR = re.compile(r"-cu(\d+)$")
_COMPILER = re.compile(r"libnvrtc\.so\.\d")
_SYSTEMS = {"linux": "Linux", "darwin": "Darwin", "win32": "Windows"}


class Wanted(msgspec.Struct, frozen=True):
    """A requirement of torch whose marker holds here."""

    name: str
    requirement: Requirement

    @property
    def text(self) -> str:
        """As an installer takes it."""
        extras = f"[{','.join(sorted(self.requirement.extras))}]" if self.requirement.extras else ""
        return f"{self.name}{extras}{self.requirement.specifier}"

    @property
    def exact(self) -> bool:
        """Whether it pins one version."""
        return any(item.operator == "==" and "*" not in item.version for item in self.requirement.specifier)

    @property
    def of_nvidia(self) -> bool:
        """Whether it is about NVIDIA's libraries."""
        return self.name.startswith("nvidia-") or self.name == TOOLKIT

    def accepts(self, version: str) -> bool:
        """Whether a version meets it; an invalid version does not."""
        try:
            return self.requirement.specifier.contains(Version(version), prereleases=True)
        except InvalidVersion:
            return False


class Wheels(msgspec.Struct, frozen=True):
    """NVIDIA's wheels against what torch requires of them."""

    wanted: tuple[Wanted, ...]
    """Every requirement of torch that holds here."""
    required: Mapping[str, Wanted]
    """Those on NVIDIA's libraries, by name."""
    missing: tuple[Wanted, ...]
    wrong: Mapping[str, str]
    """Sentences on versions that torch does not accept, by name."""
    damaged: Mapping[str, list[str]]
    """Sentences on libraries that are gone or end early, by distribution."""
    changed: tuple[str, ...]
    """Distributions with a library that differs from their own record."""
    clobbered: Mapping[str, list[str]]
    """Sentences on libraries that another wheel has overwritten, by distribution."""

    @property
    def broken(self) -> tuple[str, ...]:
        """Names of all wheels that are not as torch requires them, each once."""
        missing = (item.name for item in self.missing)
        return tuple(dict.fromkeys([*missing, *self.wrong, *self.damaged, *self.changed, *self.clobbered]))


def wheels(host: Host, environment: Environment) -> Wheels | None:
    """Return the state of NVIDIA's wheels, None without a torch that was installed as a wheel."""
    torch = environment.distribution("torch")
    if torch is None or torch.owner == "conda":  # conda's torch is served by conda's libraries, which are no wheels
        return None
    wanted = _wanted(host, environment, torch)
    unmet = [item for item in wanted if item.of_nvidia and not met(item, environment)]
    installed = {item.name: copies(environment, item.name) for item in unmet}
    missing = tuple(item for item in unmet if not installed[item.name])
    any_installed = any(copies(environment, item.name) for item in wanted if item.of_nvidia)
    if not any_installed and not lacking_libraries(environment):
        # `pip install --no-deps` on a host whose toolkit has every library: nothing is amiss
        missing = ()
    required = {item.name: item for item in wanted if item.of_nvidia}
    wrong = {
        item.name: f"{found[0].name} {found[0].version} (torch requires {item.text})"
        for item in unmet
        if (found := installed[item.name])
    }
    return Wheels(
        wanted=wanted,
        required=required,
        missing=missing,
        wrong=wrong,
        damaged=_damaged(environment),
        changed=_changed(environment),
        clobbered=_clobbered(environment, required),
    )


def _wanted(host: Host, environment: Environment, torch: Distribution) -> tuple[Wanted, ...]:
    """Requirements of torch that hold here, and those of the toolkit's extras, each once."""
    marker = marker_environment(host, environment)
    direct = list(holding(torch.requires, marker))
    # the list grows while it is read: the toolkit's own requirements are examined as well
    for item in direct:
        toolkit = environment.distribution(item.name) if item.name == TOOLKIT else None
        if toolkit is not None:
            direct += holding(toolkit.requires, marker, item.requirement.extras)
    return tuple({item.name: item for item in direct}.values())


def holding(
    requires: Iterable[str], marker: Mapping[str, str], extras: Collection[str] | None = None
) -> Iterator[Wanted]:
    """Return the requirements whose marker holds; with `extras`, only those that one of the extras adds."""
    for text in requires:
        try:
            requirement = Requirement(text)
            if requirement.marker is None:
                holds = extras is None
            else:
                chosen = ("",) if extras is None else _named(extras, text)
                holds = any(requirement.marker.evaluate({**marker, "extra": extra}) for extra in chosen)
        except (InvalidRequirement, UndefinedEnvironmentName):
            continue  # invalid metadata binds nothing: installers refuse or ignore it
        if holds:
            yield Wanted(canonicalize_name(requirement.name), requirement)


def _named(extras: Iterable[str], text: str) -> Iterator[str]:
    """The extras that a requirement's text can name."""
    # evaluating a marker for each of the toolkit's extras and requirements is slow; a substring is enough to skip
    spelled = canonicalize_name(text)
    return (extra for extra in extras if canonicalize_name(extra) in spelled)


def marker_environment(host: Host, environment: Environment) -> dict[str, str]:
    """Return the marker variables of the environment's interpreter on `host`, with no extra chosen."""
    version = environment.interpreter.version or "3"
    return {
        "python_version": ".".join(version.split(".")[:2]),
        "python_full_version": version,
        "platform_system": _SYSTEMS.get(host.system, ""),
        "sys_platform": host.system,
        "platform_machine": host.machine,
        "os_name": "nt" if host.system == "win32" else "posix",
        "extra": "",
    }


def copies(environment: Environment, name: str) -> tuple[Distribution, ...]:
    """Return every installed copy of a distribution."""
    return tuple(item for item in environment.distributions if item.name == name)


def met(wanted: Wanted, environment: Environment) -> bool:
    """Whether an installed copy fulfils a requirement."""
    return any(wanted.accepts(item.version) for item in copies(environment, wanted.name))


def lacking_libraries(environment: Environment) -> tuple[str, ...]:
    """Return the sonames of the CUDA libraries that torch's libraries need and do not find."""
    return tuple(dict.fromkeys(item.soname for item in environment.cuda_libraries if item.path is None))


def _library(path: str) -> bool:
    return ".so" in PurePosixPath(path).suffixes


def _damaged(environment: Environment) -> dict[str, list[str]]:
    """Missing and truncated libraries of NVIDIA's wheels, by distribution."""
    found: dict[str, list[str]] = {}
    for item in environment.files or ():
        lost = [*(f"{path} is gone" for path in item.missing), *(f"{path} is cut short" for path in item.cut_off)]
        libraries = [text for text in lost if _library(text.partition(" is ")[0])]
        if item.distribution.startswith("nvidia-") and libraries:
            found[item.distribution] = libraries
    return found


def _changed(environment: Environment) -> tuple[str, ...]:
    """NVIDIA's wheels with a library that differs from their own record."""
    return tuple(
        item.distribution
        for item in environment.files or ()
        if item.distribution.startswith("nvidia-") and any(map(_library, item.changed))
    )


def _clobbered(environment: Environment, required: Mapping[str, Wanted]) -> dict[str, list[str]]:
    """Libraries of required wheels that hold another wheel's content, by distribution."""
    found: dict[str, list[str]] = {}
    for conflict in environment.conflicts:
        for own, other in ((0, 1), (1, 0)):
            name = conflict.distributions[own]
            # between two wheels that torch requires, neither is the intruder
            if name in required and conflict.distributions[other] not in required:
                texts = _overwritten(conflict, own, other)
                if texts:
                    found.setdefault(name, []).extend(texts)
    return found


def _overwritten(conflict: FileConflict, own: int, other: int) -> list[str]:
    libraries = [path for path in conflict.paths if _library(path)]
    # all paths have the wheel's own content: it was installed last, and nothing of it is lost
    if not libraries or conflict.content_of[own] == len(conflict.paths):
        return []
    whose = f"of {conflict.distributions[other]}" if conflict.content_of[other] else "of nobody known"
    return [f"{path} is that {whose}, not of {conflict.distributions[own]}" for path in libraries]


def other_majors(environment: Environment) -> tuple[Distribution, ...]:
    """Return NVIDIA's wheels whose names end in another major version of CUDA than torch's."""
    torch = environment.torch
    if torch is None or torch.cuda is None:
        return ()
    own = torch.cuda.partition(".")[0]
    majors = ((item, _MAJOR.search(item.name)) for item in environment.distributions if item.name.startswith("nvidia-"))
    return tuple(item for item, match in majors if match is not None and match[1] != own)


def cuda_folders(environment: Environment) -> tuple[str, ...]:
    """Return the library directories of the wheels of cuDNN, cuBLAS and the runtime."""
    # only -cu11 and -cu12: CUDA 13's wheels have another layout (nvidia/cu13/lib)
    parts = {"cudnn": "cudnn", "cublas": "cublas", "cuda-runtime": "cuda_runtime"}
    found = (
        posixpath.join(environment.prefix, item.site, "nvidia", folder, "lib")
        for part, folder in parts.items()
        for item in environment.distributions
        if re.fullmatch(rf"nvidia-{part}-cu1[12]", item.name) and not item.outside_prefix
    )
    return tuple(dict.fromkeys(found))


def preloaded_compilers(facts: Facts, environment: Environment) -> dict[str, str | None]:
    """Return the entries of LD_PRELOAD, each with the NVRTC library of torch that it replaces, or None."""
    variable = facts.variables().get("LD_PRELOAD")
    entries = [entry for entry in re.split(r"[:\s]+", variable.value) if entry] if variable is not None else []
    others = {
        posixpath.join(environment.prefix, item.path): item.instead_of
        for item in environment.cuda_libraries
        if item.path is not None and item.instead_of is not None and _COMPILER.match(item.soname)
    }
    # the loader searches for an entry without a slash by its name
    names = {posixpath.basename(place): hidden for place, hidden in others.items()}
    return {entry: others.get(posixpath.normpath(entry)) or names.get(entry) for entry in entries}
