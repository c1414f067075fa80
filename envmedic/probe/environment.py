"""The observation of an environment, composed from the readers of this package."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from envmedic import activation as kept
from envmedic import forked, linked_prefix
from envmedic.model.facts import (
    CompanionBuild,
    Defect,
    Distribution,
    Environment,
    Interpreter,
    KeptVariable,
    Library,
    NumpyModule,
)
from envmedic.owner import require_own, unreadable
from envmedic.probe import layout
from envmedic.probe.binaries import bundled, family_files, load_checks, numpy_api, openmp, torch_family
from envmedic.probe.binaries.family_files import Package
from envmedic.probe.elf.loader import Search
from envmedic.probe.integrity import byte_code, defects, structure
from envmedic.probe.machine import build_tools
from envmedic.probe.packages import (
    distributions,
    index_configuration,
    leftovers,
    project,
    record_check,
    shadows,
    user_pins,
)
from envmedic.probe.prefix import import_paths, interpreter, kept_variables
from envmedic.probe.readable import names
from envmedic.probe.text import encodable
from envmedic.tree.walk import WalkResult, survey

if TYPE_CHECKING:
    from envmedic.probe.conda.conda_prefix import Conda

_MANY_CORES = 4
"""With so many there is one left for NumPy's texts and for byte code, beside this process, the walk and the compiled modules."""
_COMPANIONS: tuple[Literal["torchvision", "torchaudio"], ...] = ("torchvision", "torchaudio")


def observe_environment(
    prefix: Path,
    variables: Mapping[str, str] | None = None,
    *,
    deep: bool = False,
    meanwhile: Callable[[], None] | None = None,
    known_as: Path | None = None,
    named: bool = True,
) -> Environment:
    """Observe the environment at `prefix` without importing anything of it or writing into it.

    `variables` are those of the shell that activates it, by default this process's; `deep` reads and hashes every
    installed file; `meanwhile` is called once, before other processes are waited for; `known_as` is the environment of
    which `prefix` is a copy, whose path the scripts of the copy name. No program of an environment that nobody `named`
    is started. Raises `NotAnEnvironment` when
    there is none, and `PreflightError` as root on another user's. Damage inside it is a fact, never an error.
    """
    require_own(prefix)
    found = layout.read_layout(Path(os.path.abspath(prefix)))  # noqa: PTH100  # the user's spelling, links kept
    # The walk needs no other fact, so it begins first; the compiled modules are the longest work, so they come next.
    with forked.begun(lambda: survey(found.prefix)) as walk:
        inputs = _first_inputs(found, os.environ if variables is None else variables, known_as, named=named)
        with (
            forked.begun(inputs.compiled) as binaries,
            forked.begun(inputs.numpy_one, cores=_MANY_CORES) as numpy_one,
            forked.begun(inputs.byte_code, cores=_MANY_CORES) as stale,
        ):
            environment = _from_metadata(inputs)
            if meanwhile is not None:
                meanwhile()
            environment = _with_files(environment, inputs, _walked(walk, found.prefix), deep=deep)
            environment = msgspec.structs.replace(
                environment, numpy_one=numpy_one.value(), defects=(*environment.defects, *stale.value())
            )
            # once, at the end: a file name that is not UTF-8 can come from every reader
            environment = _with_compiled(environment, inputs, binaries.value())
            return encodable(_with_packages(environment, inputs.by_conda))


def _walked(walk: forked.Fork[WalkResult], prefix: Path) -> WalkResult:
    """The result of the walk. Raises StorageError where a directory cannot be read: its files would count as missing."""
    try:
        return walk.value()
    except PermissionError as error:
        raise unreadable(error, prefix) from error


class _Inputs(msgspec.Struct, frozen=True):
    """Results of the first readers, which the others take as input."""

    found: layout.Layout
    homes: tuple[Path, ...]
    """Paths by which the files of the environment may name it: its own, where it was made, and that of this copy."""
    python: Interpreter
    sites: tuple[Path, ...]
    scans: tuple[distributions.Scan, ...]
    by_conda: Conda | None
    given: Mapping[str, str]
    own: tuple[KeptVariable, ...]
    activated: Mapping[str, str]
    installed: tuple[Distribution, ...]
    packages: Mapping[str, Package]

    def compiled(self) -> load_checks.Compiled:
        """Check the compiled files, which takes as long as everything else."""
        search = Search.here(self.activated)
        return load_checks.observe(
            self.found.prefix,
            self.found.python,
            self.packages,
            search,
            scans=self.scans,
            soabi=self.python.soabi,
            variables=self.activated,
        )

    def byte_code(self) -> tuple[Defect, ...]:
        """Ask the environment's Python about the byte code of its modules."""
        return tuple(byte_code.observe(self.found, self.python, self.scans))

    def numpy_one(self) -> tuple[NumpyModule, ...] | None:
        """Search the compiled modules for the NumPy that they were compiled with."""
        return numpy_api.observe(self.scans, self.found.prefix)


def _first_inputs(found: layout.Layout, given: Mapping[str, str], known_as: Path | None, *, named: bool) -> _Inputs:
    python = interpreter.observe(found, named=named)
    own_path = known_as or found.prefix
    outside = structure.seen_through_mount(found, own_path)
    # the interpreter's answer first: a prefix can keep the libraries of several Python versions
    sites = layout.site_packages(found, python.version or found.version)
    scans = tuple(distributions.scan(site, found.prefix, soabi=python.soabi) for site in sites)
    # before `installed` below: the conda records change the owners inside the scans
    by_conda = _conda(found, python, scans)
    own = kept_variables.observe(found.prefix, given)
    installed = tuple(item.distribution for scan in scans for item in scan.installed)
    return _Inputs(
        found=found,
        homes=(own_path, *((outside,) if outside is not None else ()), found.prefix),
        python=python,
        sites=sites,
        scans=scans,
        by_conda=by_conda,
        given=given,
        own=own,
        activated=kept.overlaid(given, {item.name: item.value for item in own}),
        installed=installed,
        packages=_family(sites, installed),
    )


def _from_metadata(inputs: _Inputs) -> Environment:
    """The facts that need no look at each installed file."""
    found, python, sites, scans = inputs.found, inputs.python, inputs.sites, inputs.scans
    prefix = found.prefix
    paths = import_paths.observe(found, python, sites, inputs.activated)
    # a link beside the project may lead to an environment elsewhere
    real = linked_prefix.real_prefix(inputs.homes[0])
    beside = next((path for path in (inputs.homes[0], real) if project.observe(path, inputs.given)), real)
    hidden = shadows.observe(paths, inputs.installed, sites, found.kind)
    return Environment(
        prefix=str(prefix),
        real_prefix=str(linked_prefix.real_prefix(prefix)),
        kind=found.kind,
        interpreter=python,
        site_packages=tuple(map(str, sites)),
        include_system_site=found.includes_system_site,
        distributions=(*inputs.installed, *_outside(found, python)),
        duplicates=distributions.duplicates(inputs.installed),
        leftovers=(*leftovers.find(scans, prefix), *shadows.path_files(hidden, scans)),
        shadows=hidden,
        settings=index_configuration.observe(prefix),
        import_paths=paths,
        openmp=openmp.runtimes(scans, prefix),
        native_packages=openmp.packages(prefix),
        bitsandbytes_cuda=bundled.bitsandbytes_cuda(scans),
        variables=inputs.own,
        project=project.observe(beside, inputs.given),
        pins=user_pins.observe(beside, inputs.given),
        building=build_tools.observe(
            found,
            python,
            installed=inputs.installed,
            sites=sites,
            torch=inputs.packages.get("torch"),
            variables=inputs.given,
        ),
        externally_managed=_externally_managed(found, python),
        frozen="frozen" in names(prefix / "conda-meta"),
    )


def _with_files(environment: Environment, inputs: _Inputs, measured: WalkResult, *, deep: bool) -> Environment:
    """Add the results of the comparison of its files with RECORDs and conda records."""
    disk = record_check.Disk(Path(os.path.realpath(inputs.found.prefix)), measured.sizes)
    conda = inputs.by_conda
    if conda is None:
        held, condas = record_check.compare(inputs.scans, disk, deep=deep), None
    else:
        held = record_check.compare(inputs.scans, disk, elsewhere=conda.records_of, deep=deep)
        condas = conda.observe(inputs.scans, disk, deep=deep)
    return msgspec.structs.replace(
        environment,
        files=(*held.files, *(condas.files if condas is not None else ())),
        defects=defects.observe(inputs.found, inputs.homes, inputs.python, inputs.scans, measured.sizes),
        conflicts=(*held.conflicts, *(condas.conflicts if condas is not None else ())),
        conda=condas.environment if condas is not None else None,
        digest=measured.digest,
    )


def _with_compiled(environment: Environment, inputs: _Inputs, binaries: load_checks.Compiled) -> Environment:
    """Add the facts of its compiled files."""
    prefix, packages, family = inputs.found.prefix, inputs.packages, binaries.family
    torch = packages.get("torch")
    build = torch_family.torch_build(torch, _of(torch, family, prefix)) if torch else None
    companions = _companions(packages, family, prefix)
    loaded = {item.name: item.version for item in companions} | ({"torch": build.version} if build is not None else {})
    return msgspec.structs.replace(
        environment,
        distributions=_loaded_first(environment.distributions, loaded),
        torch=build,
        companions=companions,
        libraries=family,
        extensions=binaries.extensions.libraries,
        extension_count=binaries.extensions.count,
        cxx_runtimes=binaries.cxx_runtimes,
        cuda_libraries=binaries.cuda,
        consumers=binaries.consumers,
    )


def _with_packages(environment: Environment, conda: Conda | None) -> Environment:
    """Add the conda packages of the modules that miss something: what these depend on tells what that is."""
    missing = {item.path for item in environment.extensions if item.missing or item.unresolved or item.unmet_versions}
    if conda is None or not missing:
        return environment
    owners = conda.owners(missing)
    extensions = (msgspec.structs.replace(item, package=owners.get(item.path)) for item in environment.extensions)
    return msgspec.structs.replace(environment, extensions=tuple(extensions))


def _loaded_first(installed: Sequence[Distribution], loaded: Mapping[str, str | None]) -> tuple[Distribution, ...]:
    """Return the distributions with the metadata of what loads before other metadata of the same name and directory.

    The import path says which directory is first, and not which of two metadata directories there is stale: files
    such as torch/version.py do.
    """

    def first_place(item: Distribution) -> int:
        return next(
            place for place, other in enumerate(installed) if (other.name, other.site) == (item.name, item.site)
        )

    def stale(item: Distribution) -> bool:
        version = loaded.get(item.name)
        return version is not None and item.public != version.partition("+")[0]

    if not any(stale(item) for item in installed):
        return tuple(installed)
    return tuple(sorted(installed, key=lambda item: (first_place(item), stale(item))))


def _conda(found: layout.Layout, python: Interpreter, scans: Sequence[distributions.Scan]) -> Conda | None:
    """The records of a conda prefix, after setting the owners of its distributions by them; None for other kinds."""
    if found.kind != "conda":
        return None
    from envmedic.probe.conda import conda_prefix

    installed = conda_prefix.read_conda(found.prefix, python.version or found.version)
    installed.settle_owners(scans)
    return installed


def _family(sites: tuple[Path, ...], installed: Sequence[Distribution]) -> dict[str, Package]:
    candidates = {name: family_files.find(name, sites, installed) for name in ("torch", *_COMPANIONS)}
    return {name: package for name, package in candidates.items() if package is not None}


def _of(package: Package, read: Iterable[Library], prefix: Path) -> list[Library]:
    """The libraries inside an import package."""
    return [item for item in read if (prefix / item.path).is_relative_to(package.folder)]


def _companions(packages: Mapping[str, Package], read: tuple[Library, ...], prefix: Path) -> tuple[CompanionBuild, ...]:
    builds = (
        torch_family.companion_build(name, packages[name], _of(packages[name], read, prefix))
        for name in _COMPANIONS
        if name in packages
    )
    return tuple(build for build in builds if build is not None)


def _outside(found: layout.Layout, python: Interpreter) -> tuple[Distribution, ...]:
    """Distributions of the base interpreter, where the environment includes them."""
    if not found.includes_system_site or python.base_prefix is None:
        return ()
    sites = layout.base_site_packages(python.base_prefix, python.version or found.version)
    scans = (distributions.scan(site, found.prefix, outside=True, soabi=python.soabi) for site in sites)
    return tuple(item.distribution for scan in scans for item in scan.installed)


def _externally_managed(found: layout.Layout, python: Interpreter) -> bool:
    """Whether the standard library of the prefix itself has an EXTERNALLY-MANAGED file (PEP 668)."""
    if found.settings and python.base_prefix != str(found.prefix):
        return False  # a virtual environment: the marker of its base does not bind it
    folders = (found.prefix / library / name for library in ("lib", "lib64") for name in found.libraries)
    return any("EXTERNALLY-MANAGED" in names(folder) for folder in folders)
