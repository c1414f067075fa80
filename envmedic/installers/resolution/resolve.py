"""Resolution of exact pins to exact wheels by uv, without changes to installed distributions.

uv solves only for the pins and for dependencies that are not installed: `--excludes` removes installed distributions
from its problem. Its answer is then checked against them; a candidate that does not fit is excluded, and uv asked
again.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import unquote, urlsplit

import tomli_w
from msgspec import structs
from packaging.markers import default_environment
from packaging.requirements import InvalidRequirement, Requirement
from packaging.tags import Tag
from packaging.utils import canonicalize_name
from packaging.version import Version

from envmedic import toml
from envmedic.compat.installed_requirements import demands
from envmedic.compat.versions import version
from envmedic.errors import InstallerError, NoSolution
from envmedic.installers.index.credentials import without_credentials
from envmedic.installers.index.http import IndexSession
from envmedic.installers.resolution import project_lock
from envmedic.installers.resolution.held import hold
from envmedic.installers.resolution.project_lock import Locked
from envmedic.installers.resolution.pythons import python_for, run_for
from envmedic.installers.resolution.uv_errors import error_from
from envmedic.installers.resolution.uv_options import UvOptions, require_interpreter, variant_index
from envmedic.installers.wheels import download_cache, remote_metadata, wheel_files
from envmedic.model.facts import Environment
from envmedic.model.plan import Artifact
from envmedic.model.ports import Resolution, ResolveRequest

FAMILY = frozenset({"torch", "torchvision", "torchaudio"})
"""Distributions whose local version label names their CUDA variant."""
ROUNDS = 20
"""Limit on runs of uv, each with one more candidate excluded."""
TIMEOUT_S = 900.0
PARALLEL = 8
"""Number of wheels whose metadata is read at the same time."""


@dataclass(frozen=True)
class WheelCandidate:
    """A distribution that uv chose, and its wheel."""

    name: str
    version: str
    url: str
    sha256: str
    size_bytes: int | None

    @property
    def filename(self) -> str:
        """File name of the wheel."""
        return unquote(urlsplit(self.url).path).rpartition("/")[2]


@dataclass(frozen=True)
class Misfit:
    """A candidate that must not be taken, and why."""

    name: str
    version: str
    reason: str
    another_build: bool = False
    """Whether another build of the same public version would do."""
    held: str | None = None
    """The installed distribution that it does not fit."""


@dataclass(frozen=True)
class ResolveQuery:
    """A request, with the environment and the options for uv."""

    uv: str
    request: ResolveRequest
    environment: Environment
    options: UvOptions
    stable: bool = False
    """Whether uv must not choose a pre-release."""

    @property
    def pinned(self) -> frozenset[str]:
        """Names of the pins."""
        return frozenset(canonicalize_name(Requirement(pin).name) for pin in self.request.pins)

    @property
    def exact(self) -> frozenset[str]:
        """Names of the pins that allow a single version."""
        requirements = map(Requirement, self.request.pins)
        one = (item for item in requirements if any(spec.operator in {"==", "==="} for spec in item.specifier))
        return frozenset(canonicalize_name(item.name) for item in one)

    @property
    def stays(self) -> dict[str, str]:
        """The installed versions of what a pin names and what stays where it fits; of several copies none does."""
        return {name: version for name, version in self.preferred.items() if name in self.pinned}

    @property
    def preferred(self) -> dict[str, str]:
        """The installed versions that are taken where they fit: of what stays, and of what may change with a pin."""
        found: dict[str, list[str]] = {}
        for item in self.environment.distributions:
            prefers = self.request.prefers_installed if item.name in self.pinned else self._is_replaceable(item.name)
            if prefers and not item.outside_prefix:
                found.setdefault(item.name, []).append(item.version)
        return {name: versions[0] for name, versions in found.items() if len(versions) == 1}

    def _is_replaceable(self, name: str) -> bool:
        return any(fnmatchcase(name, pattern) for pattern in self.request.replaceable)

    def kept(self) -> dict[str, list[str]]:
        """Versions of every installed distribution that must stay as it is."""
        kept: dict[str, list[str]] = {}
        for item in self.environment.distributions:
            if item.name not in self.pinned and not self._is_replaceable(item.name):
                kept.setdefault(item.name, []).append(item.version)
        return kept

    def pins(self) -> list[str]:
        """The pins; with the label of the variant where only that build will do."""
        if not self.request.needs_variant_index:
            return list(self.request.pins)
        return [_labelled(pin, self.request.variant) for pin in self.request.pins]


def _labelled(pin: str, variant: str | None) -> str:
    """``torchvision==0.20.1`` as ``torchvision==0.20.1+cu124``; other pins as they are."""
    requirement = Requirement(pin)
    exact = [spec for spec in requirement.specifier if spec.operator == "=="]
    if variant is None or canonicalize_name(requirement.name) not in FAMILY or len(exact) != 1 or "+" in pin:
        return pin
    return f"{requirement.name}=={exact[0].version}+{variant}"


def resolve(question: ResolveQuery, session: IndexSession) -> Resolution:
    """Return exact wheels, pre-releases last. Raises `NetworkError`, `NoSolution` or `InstallerError`."""
    require_interpreter(question.environment)
    found = _resolve(question, session)
    early = _early(found, question)
    if not early:
        return found
    try:
        return _resolve(replace(question, stable=True), session)
    except NoSolution as error:
        error.early = early
        if question.request.stable:
            raise
    note = f"No release but the pre-release solves this: {', '.join(early)}"
    return structs.replace(found, notes=(*found.notes, note))


def _early(found: Resolution, question: ResolveQuery) -> tuple[str, ...]:
    """The pre-releases in the place of releases, as requirements; not those that a pin names.

    uv takes them where no release is in the range that it is asked for, and wherever a specifier mentions one.
    """
    installed: dict[str, bool] = {}
    for item in question.environment.distributions:
        known = version(item.version)
        installed[item.name] = installed.get(item.name, False) or known is None or known.is_prerelease
    chosen = (item for item in found.artifacts if installed.get(item.name) is False and item.name not in question.exact)
    return tuple(f"{item.name}=={item.version}" for item in chosen if Version(item.version).is_prerelease)


def _resolve(question: ResolveQuery, session: IndexSession) -> Resolution:
    kept = question.kept()
    rejected: list[Misfit] = []
    # At first uv does not know what is installed, and its answer is checked here: requirements of the user's packages
    # that are unmet already would leave it without any solution. What an answer does not fit, uv is told afterwards.
    for _ in range(ROUNDS):
        answer = _ask_again(question, kept, rejected)
        chosen = _changed(answer, question)
        artifacts, notes = _artifacts(question, chosen, session)
        misfit = _wrong_variant(chosen, question) or _misfit(_required(artifacts, answer, question), kept, question)
        if misfit is None:
            return Resolution(artifacts=tuple(artifacts), indexes=question.options.indexes, notes=notes)
        rejected.append(misfit)
        # An exact pin has no other candidate: to exclude it would only give a worse explanation.
        if misfit.name in question.exact and not misfit.another_build:
            break
    raise _no_fit(question, rejected)


def _ask_again(
    question: ResolveQuery, kept: Mapping[str, Sequence[str]], rejected: Sequence[Misfit]
) -> list[WheelCandidate]:
    """Run uv; if the exclusions leave no solution, raise the reason of the last one instead of uv's."""
    try:
        return _ask(question, kept, rejected)
    except NoSolution as error:
        if not rejected:
            raise
        raise _no_fit(question, rejected) from error


def _no_fit(question: ResolveQuery, rejected: Sequence[Misfit]) -> NoSolution:
    error = NoSolution(
        f"No wheel for {', '.join(question.request.pins)} fits what is installed",
        cause=rejected[-1].reason,
        hint="Give a directory with a fitting wheel with --find-links, or change what is named so that it fits",
        details=tuple(item.reason for item in rejected),
    )
    error.held = tuple(dict.fromkeys(item.held for item in rejected if item.held is not None))
    return error


def _ask(question: ResolveQuery, kept: Mapping[str, Sequence[str]], rejected: Sequence[Misfit]) -> list[WheelCandidate]:
    """Run uv once."""
    with tempfile.TemporaryDirectory(prefix="envmedic-resolve-") as name:
        folder = Path(name)
        asked = _write(folder / "requirements.in", question.pins())
        known = _binding(question, kept) if any(item.held is not None for item in rejected) else {}
        left_out = _write(folder / "installed.txt", sorted(set(kept) - set(known)))
        excluded = (f"{item.name}!={item.version}" for item in rejected)
        limits = (*question.request.constraints, *excluded, *hold(known, folder))
        constraints = _write(folder / "constraints.txt", limits)
        # uv insists on this name for the format; pylock (PEP 751) has URL, hash and size of every wheel.
        output = folder / "pylock.toml"
        if question.preferred:
            _write(output, _lock_of(question.preferred))
        python = python_for(question.environment.interpreter)
        argv = [
            *(question.uv, "pip", "compile", "--format=pylock.toml", "--no-header", "--color=never", "--no-progress"),
            *("--only-binary=:all:", "--no-python-downloads", f"--python={python}", *_platform(question.request)),
            *_settings(question.options, folder),
            *(("--prerelease=disallow",) if question.stable else ()),
            *(f"--excludes={left_out}", "-c", str(constraints), *question.options.arguments),
            *("-o", str(output), str(asked)),
        ]
        result = run_for(python, argv, env=question.options.environment, timeout_s=TIMEOUT_S)
        if result.returncode != 0:
            raise error_from(result, question.request.pins, variant_index(question.request))
        ranks = wheel_files.tag_ranks(question.environment.interpreter)
        lock = toml.loads(output.read_text(encoding="utf-8"))
        packages = [item for item in lock.get("packages", ()) if item["name"] not in known]
        return candidates({"packages": packages}, ranks, project_lock.wheels(question.environment))


def _lock_of(versions: Mapping[str, str]) -> Iterator[str]:
    """The lines of a lock of these versions: uv prefers those in the file that it is to write."""
    yield from ('lock-version = "1.0"', 'created-by = "envmedic"')
    for name, release in versions.items():
        yield from ("[[packages]]", f'name = "{name}"', f'version = "{release}"')


def _platform(request: ResolveRequest) -> tuple[str, ...]:
    return () if request.platform is None else (f"--python-platform={request.platform}",)


def _settings(options: UvOptions, folder: Path) -> tuple[str, ...]:
    """The option for settings of uv that replace its own; none where these count."""
    if options.settings is None:
        return ()
    path = folder / "uv.toml"
    path.write_text(tomli_w.dumps(options.settings), encoding="utf-8")
    return (f"--config-file={path}",)


def _binding(question: ResolveQuery, kept: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Versions of what stays and binds every new wheel.

    Not of what an installed distribution that may change does not fit today: its next release need not fit either.
    """
    every = demands(question.environment, marker_environment(question.environment))
    unmet = {item.name for item in every if item.by.name not in kept and not item.met}
    free = unmet - set(question.request.settles)
    return {
        name: versions[0]
        for name, versions in kept.items()
        if len(versions) == 1 and name not in free and version(versions[0]) is not None
    }


def _write(path: Path, lines: Iterable[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def candidates(
    lock: Mapping[str, Any], ranks: dict[Tag, int], locked: Locked = MappingProxyType({})
) -> list[WheelCandidate]:
    """The distributions of a pylock document (PEP 751), each with its best wheel for these tags.

    Of a release that the project has locked, that is the wheel of its lock.
    """
    return [_locked(package, ranks, locked) or _candidate(package, ranks) for package in lock.get("packages", ())]


def _locked(package: Mapping[str, Any], ranks: dict[Tag, int], locked: Locked) -> WheelCandidate | None:
    """The file that the project's lock has of that release, as its own sync would install; None for another release."""
    name, release = canonicalize_name(package["name"]), package["version"]
    wanted = project_lock.choose(name, release, locked, ranks)
    if not wanted:
        return None
    offered = [_wheel(package, wheel) for wheel in package.get("wheels", ())]
    for file in wanted:
        same = next((item for item in offered if item.sha256 == file.sha256), None)
        if file.url is not None:
            url = same.url if same is not None and same.url.startswith("file:") else file.url
            return WheelCandidate(name, release, url, file.sha256, file.size_bytes)
        if same is not None:
            return same
    raise project_lock.refusal(name, release)


def _candidate(package: Mapping[str, Any], ranks: dict[Tag, int]) -> WheelCandidate:
    every = [_wheel(package, wheel) for wheel in package.get("wheels", ())]
    if not every:
        raise InstallerError(
            f"uv chose no wheel for {package['name']}",
            cause="it is taken from a URL or a source tree by uv's own configuration",
            hint=f"Remove {package['name']} from uv's sources or overrides",
        )
    # The same content may be both in a local directory and on an index; the local file needs no download.
    return min(every, key=lambda item: (wheel_files.rank(item.filename, ranks), not item.url.startswith("file:")))


def _wheel(package: Mapping[str, Any], wheel: Mapping[str, Any]) -> WheelCandidate:
    url = wheel.get("url") or Path(wheel["path"]).absolute().as_uri()
    sha256 = wheel.get("hashes", {}).get("sha256") or _own_hash(url)
    if sha256 is None:
        raise InstallerError(
            f"The index gives no SHA-256 for {package['name']} {package['version']}",
            cause=f"{without_credentials(url)} has only {', '.join(wheel.get('hashes', {})) or 'none'}",
            hint="Download it into a directory, and give that with --find-links",
        )
    return WheelCandidate(
        name=canonicalize_name(package["name"]),
        version=package["version"],
        # Plans are shown, stored and shared: a login comes from the configuration again when the wheel is fetched.
        url=without_credentials(url.partition("#")[0]),
        sha256=sha256,
        size_bytes=wheel.get("size"),
    )


def _own_hash(url: str) -> str | None:
    """SHA-256 of a local file, for releases of uv that give none; None for a remote or missing file."""
    parts = urlsplit(url)
    path = Path(unquote(parts.path))
    return wheel_files.sha256_of(path) if parts.scheme == "file" and path.is_file() else None


def _changed(chosen: Iterable[WheelCandidate], question: ResolveQuery) -> list[WheelCandidate]:
    """Candidates that change something: pinned, or not installed in that version."""
    installed = {(item.name, item.version) for item in question.environment.distributions}
    again = question.pinned - question.stays.keys()
    return [item for item in chosen if item.name in again or (item.name, item.version) not in installed]


def _artifacts(
    question: ResolveQuery, chosen: Sequence[WheelCandidate], session: IndexSession
) -> tuple[list[Artifact], tuple[str, ...]]:
    """The artifacts with their metadata, and a note for each without."""
    offline = question.request.offline

    def described(item: WheelCandidate) -> remote_metadata.WheelFacts:
        # offline, uv may still name a wheel of a server, from its own cache
        here = remote_metadata.local_file(item.url) is not None
        return remote_metadata.WheelFacts() if offline and not here else remote_metadata.read_facts(item.url, session)

    # A torch family brings a dozen NVIDIA wheels and more, each with two or three requests to a distant server.
    with ThreadPoolExecutor(PARALLEL) as pool:
        facts = list(pool.map(described, chosen))
    unknown = [item.filename for item, known in zip(chosen, facts, strict=True) if known.requires is None]
    why = "What {} requires is not known without the network"
    if not offline:
        why = "The server does not tell what {} requires before its download"
    return [_artifact(*pair) for pair in zip(chosen, facts, strict=True)], tuple(map(why.format, unknown))


def _artifact(candidate: WheelCandidate, facts: remote_metadata.WheelFacts) -> Artifact:
    return Artifact(
        name=candidate.name,
        version=candidate.version,
        filename=candidate.filename,
        url=candidate.url,
        sha256=candidate.sha256,
        size_bytes=candidate.size_bytes or facts.size_bytes,
        local_path=str(download_cache.path_of(candidate.sha256, candidate.filename)),
        requires=facts.requires or (),
    )


def _wrong_variant(chosen: Iterable[WheelCandidate], question: ResolveQuery) -> Misfit | None:
    """A member of the family in another CUDA variant; unlabelled builds are those of the default index."""
    wanted = question.request.variant
    for item in chosen:
        label = Version(item.version).local
        # By PEP 440 +cu126 sorts above +cu124, and both above no label: a second index can bring another variant.
        if wanted is not None and item.name in FAMILY and label not in {None, wanted}:
            reason = f"{item.name} {item.version} is not a {wanted} build"
            return Misfit(item.name, item.version, reason, another_build=True)
    return None


def _required(
    artifacts: Sequence[Artifact], answer: Iterable[WheelCandidate], question: ResolveQuery
) -> Iterator[tuple[str, str, Sequence[str]]]:
    """Name, version and requirements of what comes, and of what might have changed and stays."""
    yield from ((item.name, item.version, item.requires) for item in artifacts)
    new = {item.name for item in artifacts}
    stays = {item.name for item in answer if item.name not in new}
    for item in question.environment.distributions:
        if item.name in stays:
            yield item.name, item.version, [text for text in item.requires if _readable(text) is not None]


def _misfit(
    found: Iterable[tuple[str, str, Sequence[str]]], kept: Mapping[str, list[str]], question: ResolveQuery
) -> Misfit | None:
    """A candidate that needs another version of something that stays."""
    markers = marker_environment(question.environment)
    if question.request.platform is not None:
        markers["platform_machine"] = question.request.platform.partition("-")[0]
    for candidate, release, requires in found:
        known = _required_already(candidate, question.environment)
        for text in requires:
            requirement = Requirement(text)
            name = canonicalize_name(requirement.name)
            if str(requirement) in known and name not in question.request.settles:
                continue  # unmet already before the repair, which is not about it
            versions = kept.get(name, [])
            # Installed is installed: packaging would reject a pre-release that nobody asked for.
            met = any(requirement.specifier.contains(version, prereleases=True) for version in versions)
            applies = requirement.marker is None or requirement.marker.evaluate(markers)
            if versions and applies and not met:
                needs = f"{candidate} {release} needs {requirement.name}{requirement.specifier}"
                reason = f"{needs}, but {' and '.join(versions)} is installed"
                return Misfit(candidate, release, reason, held=name)
    return None


def _required_already(name: str, environment: Environment) -> frozenset[str]:
    """What the installed distribution of that name requires."""
    found = (text for item in environment.distributions if item.name == name for text in item.requires)
    return frozenset(str(requirement) for requirement in map(_readable, found) if requirement is not None)


def _readable(text: str) -> Requirement | None:
    """A requirement, None for one that no installer could read."""
    try:
        return Requirement(text)
    except InvalidRequirement:
        return None


def marker_environment(environment: Environment) -> dict[str, str]:
    """The marker variables (PEP 508) of the environment's interpreter, with no extra chosen."""
    # Platform markers are those of this machine, and only Python may differ from the one that runs envmedic.
    values = {key: str(value) for key, value in default_environment().items()}
    version = environment.interpreter.version or values["python_full_version"]
    major_minor = ".".join(version.split(".")[:2])
    return {
        **values,
        "extra": "",
        "python_full_version": version,
        "python_version": major_minor,
        "implementation_version": version,
    }
