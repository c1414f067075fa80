"""Observations of a host and an environment, never judgements."""

from __future__ import annotations

from typing import Final, Literal

from envmedic.model.answers.content import Content
from envmedic.model.answers.gpu_health import HostGpus
from envmedic.model.base import Model
from envmedic.model.conda import CondaEnvironment
from envmedic.model.consumers import Consumer
from envmedic.model.pins import Project, UserPin

FACTS_SCHEMA: Final = "envmedic.facts/1"

EnvironmentKind = Literal["venv", "virtualenv", "uv", "conda", "system", "unknown"]
OriginKind = Literal["index", "archive", "vcs", "directory", "editable", "conda", "unknown"]
# `tilde`: pip renames a directory to `~ame` before it removes it, and an interruption leaves that name.
LeftoverKind = Literal["tilde", "empty-dist-info", "orphan-package", "orphan-library", "path-file"]


class Gpu(Model, frozen=True, kw_only=True):
    """One NVIDIA GPU as the driver reports it."""

    # CUDA numbers GPUs by speed unless CUDA_DEVICE_ORDER=PCI_BUS_ID, so CUDA's index can be another one
    index: int
    """NVML index, in PCI order."""
    name: str
    uuid: str | None = None
    compute_capability: str | None = None
    """``major.minor`` such as ``9.0``; None when nothing could tell."""
    memory_bytes: int | None = None
    visible: bool = True
    """Whether CUDA_VISIBLE_DEVICES leaves it visible to a process started here."""
    pci_bus_id: str | None = None


class Toolkit(Model, frozen=True, kw_only=True):
    """A CUDA toolkit found on the host or in the environment."""

    path: str
    version: str | None
    """Version that its ``nvcc --version`` (or version.json) reports, such as ``12.4``."""
    nvcc: str | None = None
    found_by: str
    """How it was found: ``CUDA_HOME``, ``CUDA_PATH``, ``PATH``, ``/usr/local/cuda`` or ``prefix``."""
    missing_headers: tuple[str, ...] = ()
    """Headers that torch's own include and that it lacks."""
    stubs: str | None = None
    """Its directory with a stand-in for libcuda.so to link with, None without one."""


class Compiler(Model, frozen=True, kw_only=True):
    """A host compiler on PATH or named by CC or CXX."""

    path: str
    name: Literal["gcc", "g++", "clang", "clang++", "unknown"]
    version: str | None
    found_by: str
    libcuda: bool | None = None
    """Whether it links with ``-lcuda`` from its own directories; None for the system's compiler, which searches the
    system's directories, and where the compiler does not state its directories."""


class Variable(Model, frozen=True, kw_only=True):
    """An environment variable that affects builds, the loader or the choice of GPUs."""

    name: str
    value: str
    source: str = "process"
    """``process``, with the shell file (and line) or image that sets it where one does."""


class Host(Model, frozen=True, kw_only=True):
    """The machine on which the environment runs (or will run: ``--host FILE``)."""

    system: str = "linux"
    """``sys.platform``."""
    machine: str = "x86_64"
    kernel: str | None = None
    distribution: str | None = None
    """PRETTY_NAME of os-release."""
    glibc: str | None = None
    driver_version: str | None = None
    """Version of the NVIDIA kernel driver; None when there is none."""
    driver_cuda: str | None = None
    """Newest CUDA version whose full feature set the driver covers, as NVML reports it."""
    driver_source: str | None = None
    """Where the driver version was read: ``nvml``, ``/sys/module/nvidia/version``, ``/proc/driver/nvidia/version``,
    ``UV_CUDA_DRIVER_VERSION``, ``CONDA_OVERRIDE_CUDA``."""
    driver_libraries: str | None = None
    """Version of the driver's libraries, by the file that libcuda.so.1 leads to; None when that tells none."""
    nvml_error: str | None = None
    lost_gpus: tuple[str, ...] = ()
    """GPUs that the driver lists and cannot reach, each with its error."""
    fabric: str | None = None
    """State of the fabric that joins the GPUs: ``not started``, ``in progress``, ``completed``; None without one."""
    pci_gpus: int | None = None
    """NVIDIA GPUs on the PCI bus, driver or not; None where the bus cannot be read."""
    device_files: tuple[str, ...] = ()
    """The driver's files in /dev."""
    gpus: tuple[Gpu, ...] = ()
    toolkits: tuple[Toolkit, ...] = ()
    compilers: tuple[Compiler, ...] = ()
    variables: tuple[Variable, ...] = ()
    libcuda: tuple[str, ...] = ()
    """Directories with a libcuda.so that the system's linker looks in."""
    network_interfaces: tuple[str, ...] = ()
    """Names of the network interfaces, empty where they are not known."""
    stub_drivers: tuple[str, ...] = ()
    """Entries of LD_LIBRARY_PATH with a toolkit's stand-in named libcuda.so.1."""
    lost_preloads: tuple[str, ...] = ()
    """Entries of LD_PRELOAD that lead to no file."""
    container: str | None = None
    wsl: bool = False
    source: str = "observed"
    """``observed`` or the path of the file given with ``--host``."""

    def visible_gpus(self) -> tuple[Gpu, ...]:
        """GPUs that a process started here can use."""
        return tuple(gpu for gpu in self.gpus if gpu.visible)


DefectKind = Literal[
    "interpreter-version",
    "standard-library",
    "pyvenv",
    "moved",
    "program",
    "program-mode",
    "start-hook",
    "path-file",
    "source-gone",
    "metadata",
    "byte-code",
]


class Defect(Model, frozen=True, kw_only=True):
    """Damage that neither the lists of files nor the compiled modules show."""

    kind: DefectKind
    path: str
    """Relative to the prefix where it lies inside it."""
    distribution: str | None = None
    """Normalised name of the distribution concerned, None where it is the environment itself."""
    detail: str
    """What is wrong with it, to be read after its path."""
    names: str | None = None
    """The wrong path in it: of ``moved`` where the environment was made, of ``program`` the interpreter of a script, of
    ``source-gone`` the source."""
    now: str | None = None
    """Where the directory that it names is now, as far as the former place of the environment tells."""
    found: str | None = None
    """Of ``source-gone``: the nearest directory around its former place that holds a project of that name."""
    entry_point: str | None = None
    """Of ``program``: the function that the script calls, as ``module:function``."""


# Without site-packages (-I -S): a broken .pth file or sitecustomize says nothing about the interpreter.
class Interpreter(Model, frozen=True, kw_only=True):
    """The Python of an environment, asked in isolated mode without its site-packages."""

    path: str
    starts: bool
    error: str | None = None
    """Why it does not start, when it does not."""
    version: str | None = None
    implementation: str | None = None
    soabi: str | None = None
    base_prefix: str | None = None
    platform_tag: str | None = None
    """``sysconfig.get_platform()`` with ``-`` and ``.`` as ``_``, for wheel tags."""
    free_threaded: bool = False
    lacks: tuple[str, ...] = ()
    """Modules of the standard library that every program may take for granted, and that are not there."""
    replacement: str | None = None
    """Of a virtual environment without the Python that it was made for: one of the host that can take its place."""
    named: bool = True
    """Whether the user named or activated the environment. No program of one that was found by directory is started."""
    answers: str | None = None
    """The Python of the host that answers for one that nobody named; None where only files were read."""


class Origin(Model, frozen=True, kw_only=True):
    """Where a distribution came from."""

    kind: OriginKind
    url: str | None = None
    revision: str | None = None
    subdirectory: str | None = None
    """Directory of the project in the archive or repository, when not the root."""
    sha256: str | None = None


class Distribution(Model, frozen=True, kw_only=True):
    """An installed distribution, read from its dist-info (or egg-info) directory."""

    name: str
    """Normalised name (PEP 503)."""
    version: str
    """Full version, with the local part."""
    metadata_path: str
    """The dist-info or egg-info; relative to the prefix if inside it."""
    site: str
    """Its site-packages directory; relative to the prefix if inside it."""
    owner: Literal["pip", "uv", "conda", "other"] = "other"
    """INSTALLER's word, or conda when a conda record owns it."""
    origin: Origin
    requested: bool = False
    requires: tuple[str, ...] = ()
    requires_python: str | None = None
    tags: tuple[str, ...] = ()
    """Wheel tags from WHEEL."""
    import_names: tuple[str, ...] = ()
    has_record: bool = True
    record_error: str | None = None
    """What is wrong with RECORD, when it is damaged."""
    size_bytes: int = 0
    """Sum of the sizes in RECORD."""
    outside_prefix: bool = False

    @property
    def local(self) -> str | None:
        """The local version label such as ``cu124`` or ``cpu``."""
        _, plus, label = self.version.partition("+")
        return label if plus else None

    @property
    def public(self) -> str:
        """The version without its local label."""
        return self.version.partition("+")[0]


class Leftover(Model, frozen=True, kw_only=True):
    """Debris of an interrupted or partial uninstall, or a path file that puts another copy first."""

    kind: LeftoverKind
    path: str
    """Relative to the prefix."""
    name: str | None = None
    detail: str = ""
    version: str | None = None
    """Version of its former distribution, if its files still state one."""
    code: bool = False
    """Whether it is code, or the metadata of code beside it."""


# Byte code is left out of the counts: Python writes and removes it by itself.
class DistributionFiles(Model, frozen=True, kw_only=True):
    """Comparison of a distribution's list of files (RECORD, or a conda record) with the disk."""

    distribution: str
    """Normalised name."""
    version: str
    metadata_path: str
    """The dist-info, or the conda record, relative to the prefix."""
    recorded: int
    """Number of files that it lists, except byte code and its own metadata."""
    matching: int
    """Number of files on disk in the recorded size."""
    missing: tuple[str, ...] = ()
    """Files that a program needs and that are gone, at most 20; tests, headers and documents are left out."""
    missing_count: int = 0
    """Number of all of them."""
    cut_off: tuple[str, ...] = ()
    """Files that are empty, end before their content does, or (with ``--deep``) hold something else."""
    changed: tuple[str, ...] = ()
    """Files that are whole and not as they were installed, at most 20: edited, stripped or patched."""
    changed_count: int = 0
    """Number of all of them."""


class FileConflict(Model, frozen=True, kw_only=True):
    """Two distributions, or a conda package and a distribution, that list the same files with different content."""

    distributions: tuple[str, str]
    """Normalised names; of a conda package its own."""
    conda: bool = False
    """Whether the first one is a conda package."""
    paths: tuple[str, ...]
    """At most 20, relative to the prefix."""
    count: int
    """Number of all of them."""
    content_of: tuple[int, int]
    """How many of `paths` hold the first one's content, and how many the second one's."""


class Shadow(Model, frozen=True, kw_only=True):
    """A package outside the environment that Python finds before the environment's own."""

    kind: Literal["user-site", "PYTHONPATH", "pth"]
    """What puts it first."""
    name: str
    """Name of the environment's distribution that it hides."""
    where: str
    """The file or directory that is found instead."""
    version: str | None
    """Of what is found instead, where it says so."""
    hidden_version: str
    """Of the environment's own."""
    source: str
    """The variable, or the path file (relative to the prefix), that puts it first."""


class UnresolvedSymbol(Model, frozen=True, kw_only=True):
    """A symbol that a library needs and nothing in its load closure defines."""

    symbol: str
    demangled: str | None = None


class UnmetVersion(Model, frozen=True, kw_only=True):
    """A version of a library's symbols, such as ``GLIBCXX_3.4.30``, that the library found does not define."""

    version: str
    found: str
    """Path of the library that was found."""
    needed_by: str
    """Path of the library that asks for it."""


# Read by its ELF headers: loading it would run its constructors, and a broken one may end the process.
class Library(Model, frozen=True, kw_only=True):
    """A compiled library, read from its ELF headers without loading it."""

    path: str
    """Relative to the prefix if inside it."""
    distribution: str | None
    needed: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    """NEEDED sonames that the load closure does not find."""
    unresolved: tuple[UnresolvedSymbol, ...] = ()
    """At most 20; `unresolved_count` has the number."""
    # cut off, with a count beside it: a library built for another torch lacks thousands, and facts are read by people
    unresolved_count: int = 0
    unmet_versions: tuple[UnmetVersion, ...] = ()
    """Symbol versions that it or its dependencies need and do not find."""
    sass: tuple[str, ...] = ()
    """Capabilities with machine code, ascending, such as ``("7.5", "9.0a")``."""
    ptx: tuple[str, ...] = ()
    """Capabilities with PTX."""
    gpu_code: bool = False
    """Whether it holds GPU code at all."""
    uses_cuda: bool = False
    """Whether it links the CUDA runtime or libtorch_cuda, or holds GPU code."""
    package: str | None = None
    """The conda package that brings it, where it misses something."""
    error: str | None = None
    """Why it could not be read (truncated, not ELF, other machine)."""


# One libstdc++ serves a whole process, the first one found, so every copy that may be first counts.
class CxxRuntime(Model, frozen=True, kw_only=True):
    """A copy of the C++ run-time library (libstdc++.so.6)."""

    path: str
    newest: str | None
    """Newest ``GLIBCXX_`` version that it defines."""
    newest_abi: str | None = None
    """Newest ``CXXABI_`` version that it defines."""
    found_by: Literal["process", "LD_LIBRARY_PATH", "prefix", "system"]
    """``process``: the copy that compiled modules load; else the location of another one."""
    entry: str | None = None
    """The entry of LD_LIBRARY_PATH that leads to it."""


class CudaLibrary(Model, frozen=True, kw_only=True):
    """A library of CUDA that torch's own libraries need, as the run-time loader finds it."""

    soname: str
    """The name that is asked for, such as ``libcusparse.so.12``."""
    path: str | None
    """The file that is found, relative to the prefix if inside it; None without one."""
    instead_of: str | None = None
    """The environment's own file of that name, where another one is found before it."""
    unresolved: tuple[str, ...] = ()
    """Symbols that it needs and nothing defines, demangled where possible, at most 20."""
    unresolved_count: int = 0
    needed_by: str | None = None
    """The library that asks for it, where it is not found."""


class TorchBuild(Model, frozen=True, kw_only=True):
    """Torch's build by its own generated files (``torch/version.py``, read as text)."""

    # read, not imported: an import runs code of a broken environment, and may crash

    version: str
    cuda: str | None
    """CUDA version it was compiled with, such as ``12.4``; None for a CPU build."""
    hip: str | None = None
    git_version: str | None = None
    variant: str | None = None
    """``cu124``, ``cpu`` or ``rocm6.2``; None when it cannot be told."""
    arch_list: tuple[str, ...] = ()
    """Capabilities present in nearly every fatbin of its CUDA library."""
    ptx_list: tuple[str, ...] = ()
    cxx11_abi: bool | None = None
    """Whether its functions take the newer form of C++ strings; None when its library does not tell."""
    nvrtc: str | None = None
    """CUDA release of the run-time compiler (NVRTC) beside it, such as ``12.4``."""
    nvrtc_builtins: bool | None = None
    """Whether NVRTC's builtins library is beside it, under the name that NVRTC opens."""


class CompanionBuild(Model, frozen=True, kw_only=True):
    """What an installed torchvision or torchaudio says of its own build."""

    name: Literal["torchvision", "torchaudio"]
    version: str
    cuda: str | None = None
    """CUDA version it was compiled with (its local label or ``version.py``; only the major version where just the
    linked runtime tells), None for a CPU build or when unknown."""
    variant: str | None = None
    has_gpu_code: bool | None = None
    """Whether its operator library holds GPU code; None when there is no such library."""
    requires_torch: str | None = None
    """Its Requires-Dist on torch, such as ``torch==2.5.1``."""


# Settings are observed, since pip and uv read files, variables and the directory: the same command can ask another
# index.
class InstallerSetting(Model, frozen=True, kw_only=True):
    """One setting of pip or uv that decides where distributions come from."""

    tool: Literal["pip", "uv"]
    key: Literal[
        "index-url",
        "extra-index-url",
        "find-links",
        "no-index",
        "constraint",
        "cert",
        "index-strategy",
        "torch-backend",
        "unreadable",
    ]
    """``unreadable``: the source is damaged, and `value` says how."""
    value: str
    source: str
    """The file or variable it was read from."""


class ImportPath(Model, frozen=True, kw_only=True):
    """Something outside site-packages that can shadow the environment's own distributions."""

    kind: Literal[
        "pth", "user-site", "PYTHONPATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "activation-script", "sitecustomize"
    ]
    where: str
    adds: str


class OpenMpRuntime(Model, frozen=True, kw_only=True):
    """A file of an OpenMP runtime. Copies of GNU's (libgomp) live beside each other, those of the others do not."""

    path: str
    """Relative to the prefix."""
    kind: Literal["libgomp", "libiomp5", "libomp"]
    """By its file name; Intel's and LLVM's (the last two) are of one family."""
    distribution: str | None
    """The wheel or conda package that brings it, None when no record lists it."""
    same_as: str | None = None
    """Path of the file that it is a link to, where both are found."""


class NativePackage(Model, frozen=True, kw_only=True):
    """A conda package of MKL or of an OpenMP runtime, from the name of its record in ``conda-meta``."""

    name: str
    version: str
    build: str


class NumpyModule(Model, frozen=True, kw_only=True):
    """A compiled module that knows the binary interface of NumPy 1 only."""

    distribution: str
    """Normalised name."""
    version: str
    path: str
    """Relative to the prefix."""


# conda keeps them in its state file or in scripts, virtual environments in their activation scripts.
class KeptVariable(Model, frozen=True, kw_only=True):
    """A variable that the environment keeps for the shells that activate it."""

    name: str
    value: str | None
    """None where activation unsets it."""
    source: str
    """The file that says so, relative to the prefix."""


class RecordedSource(Model, frozen=True, kw_only=True):
    """The source directory that a distribution was built from, as it is now."""

    distribution: str
    """Normalised name."""
    path: str
    exists: bool
    cuda: bool = False
    """Whether it holds CUDA sources (``.cu``)."""
    requires: tuple[str, ...] | None = None
    """``build-system.requires`` of its pyproject.toml; None where it has none, so that setuptools builds it."""


class Building(Model, frozen=True, kw_only=True):
    """What extensions are built with in the activated environment, apart from what the host has."""

    assignments: tuple[KeptVariable, ...] = ()
    """Variables of builds that its activation scripts set by themselves, in their order, each with file and line."""
    toolkits: tuple[Toolkit, ...] = ()
    """CUDA toolkits inside the prefix, and those that its variables name."""
    compilers: tuple[Compiler, ...] = ()
    """Host compilers that its variables CC and CXX name."""
    ninja: str | None = None
    """The ninja that an activated shell finds."""
    python_headers: bool | None = None
    """Whether its Python has ``Python.h``; None where that could not be told."""
    architectures: tuple[str, ...] = ()
    """Entries of TORCH_CUDA_ARCH_LIST that the installed torch knows, as its ``cpp_extension.py`` lists them."""
    named_architectures: tuple[str, ...] = ()
    """Names such as ``Hopper`` that it also knows."""
    sources: tuple[RecordedSource, ...] = ()
    """Of the distributions that were installed from a directory."""
    imports_of_setuptools: tuple[str, ...] = ()
    """What torch's builder imports that only some versions of setuptools have: ``pkg_resources``,
    ``pkg_resources.packaging``."""


# Found by experiment only: nothing in the files tells in which order two libraries crash.
class ImportCrash(Model, frozen=True, kw_only=True):
    """The smallest set of imports that ends Python, found by trying them in processes of their own."""

    sequence: tuple[str, ...]
    """Import names in the order that fails."""
    signal: str | None
    """Such as ``SIGSEGV``; None where the last import raises an error that it does not raise alone."""
    error: str
    """The end of what such a process prints."""
    works: tuple[str, ...] = ()
    """An order of the same names that works, empty where none does."""


# Read where a text speaks of protobuf: a large environment has hundreds of such files.
class GeneratedModule(Model, frozen=True, kw_only=True):
    """A Python module that protobuf's compiler generated, and the runtimes that it works with."""

    path: str
    """Relative to the prefix."""
    distribution: str | None
    """Normalised name; None where no distribution brings its package."""
    accepts: str
    """Versions of protobuf, such as ``<4``."""


class TextStatement(Model, frozen=True, kw_only=True):
    """What a text states of a module or a release, and whether the environment's files bear it out."""

    module: str | None = None
    name: str | None = None
    """Name that the module lacks by the text; None where the module itself is missing."""
    requirement: str | None = None
    """Requirement that is unmet by the text."""
    call: str | None = None
    """Call that is refused by the text, as `Asked.call` has it."""
    refuses: str | None = None
    """Package that refuses the call."""
    fails: str | None = None
    """Package whose import fails by the text."""
    holds: bool | None
    """Whether it is so here; None where the files do not tell."""
    told: str = ""
    """What the files say, in words."""
    extras: tuple[str, ...] = ()
    """What extras of installed distributions require of the missing module, one sentence each."""
    distribution: str | None = None
    """Requirement on what is known to bring the missing module, and is not installed, or in too old a release."""


class Environment(Model, frozen=True, kw_only=True):
    """A Python environment observed from outside."""

    prefix: str
    """As the user named it, made absolute."""
    real_prefix: str
    """With every symbolic link resolved."""
    kind: EnvironmentKind
    interpreter: Interpreter
    site_packages: tuple[str, ...] = ()
    """Absolute paths inside the prefix, purelib first."""
    include_system_site: bool = False
    distributions: tuple[Distribution, ...] = ()
    # Of two copies, `importlib.metadata` and pip may each see another one.
    duplicates: tuple[str, ...] = ()
    """Names that more than one metadata directory claims."""
    leftovers: tuple[Leftover, ...] = ()
    files: tuple[DistributionFiles, ...] | None = None
    """Distributions whose files are not as listed, and every copy of the doubled ones; None when not looked at."""
    defects: tuple[Defect, ...] = ()
    conflicts: tuple[FileConflict, ...] = ()
    shadows: tuple[Shadow, ...] = ()
    torch: TorchBuild | None = None
    companions: tuple[CompanionBuild, ...] = ()
    libraries: tuple[Library, ...] = ()
    """Of the torch family."""
    extensions: tuple[Library, ...] = ()
    """Compiled modules of all others that use torch or CUDA, or that would not load."""
    extension_count: int = 0
    """Number of compiled modules that were examined."""
    cxx_runtimes: tuple[CxxRuntime, ...] = ()
    """The copy of libstdc++ in the process, then others, where a version is missing."""
    cuda_libraries: tuple[CudaLibrary, ...] = ()
    """What torch's libraries load of CUDA; empty where torch is not installed, brings them itself, or uses none."""
    consumers: tuple[Consumer, ...] = ()
    """Libraries that compute on GPUs, torch among them."""
    settings: tuple[InstallerSetting, ...] = ()
    import_paths: tuple[ImportPath, ...] = ()
    openmp: tuple[OpenMpRuntime, ...] = ()
    native_packages: tuple[NativePackage, ...] = ()
    bitsandbytes_cuda: tuple[str, ...] | None = None
    """CUDA releases (``12.4``) that its bitsandbytes has a library for; None without bitsandbytes."""
    numpy_one: tuple[NumpyModule, ...] | None = None
    """Modules that NumPy 2 refuses, one of each distribution; None where no NumPy 2 is installed."""
    generated: tuple[GeneratedModule, ...] | None = None
    """Modules generated by protobuf's compiler that accept some runtimes only; None when not looked at."""
    building: Building | None = None
    conda: CondaEnvironment | None = None
    """Conda's packages, None outside a conda prefix."""
    variables: tuple[KeptVariable, ...] = ()
    """What activation sets and unsets."""
    project: Project | None = None
    """The project that it belongs to; None where no file beside it tells of one."""
    pins: tuple[UserPin, ...] = ()
    """Versions that constraints, the manifest and the lock state, with file and line."""
    externally_managed: bool = False
    frozen: bool = False
    digest: str = ""
    """Changes whenever an installed file does (byte-code caches apart); see `tree.digest`."""

    def distribution(self, name: str) -> Distribution | None:
        """The first installed distribution of that normalised name, or None."""
        # distributions are in the order of the import path: of several copies this is the imported one
        return next((item for item in self.distributions if item.name == name), None)

    def companion(self, name: str) -> CompanionBuild | None:
        """The build facts of torchvision or torchaudio, or None when it is not installed."""
        return next((item for item in self.companions if item.name == name), None)


class Facts(Model, frozen=True, kw_only=True):
    """Everything observed: the document of ``envmedic facts --json`` and of ``--host FILE``."""

    schema: Literal["envmedic.facts/1"] = FACTS_SCHEMA
    # a default, since a file for --host may be written by hand
    envmedic: str = ""
    """Version that observed."""
    host: Host
    """The machine."""
    environment: Environment | None = None
    """The environment, null with ``--host-only``."""
    gpu_health: HostGpus | None = None
    """The condition of the host's GPUs at this moment; null where it was not asked for, or there is no GPU."""
    import_crash: ImportCrash | None = None
    """Imports that end Python, where a text of a crash made envmedic look for them."""
    statements: tuple[TextStatement, ...] = ()
    """What the text states of modules and releases, looked up in the environment's files."""
    content: Content | None = None
    """What of the environment is the same wherever it is installed; read by ``envmedic facts`` alone."""
    interrupted: str | None = None
    """The interrupted transaction on the environment, which `envmedic recover` settles; null without one."""
    tables: dict[str, str] = {}
    """The day (ISO 8601) on which each compatibility table was written that the facts are judged by."""
    data: str = ""
    """The version of these tables."""

    def variables(self) -> dict[str, Variable]:
        """The variables by name, as in an activated shell: the environment's own replace the host's."""
        found = {item.name: item for item in self.host.variables}
        for item in self.environment.variables if self.environment is not None else ():
            if item.value is None:  # activation unsets it
                found.pop(item.name, None)
            else:
                found[item.name] = Variable(name=item.name, value=item.value, source=item.source)
        return found
