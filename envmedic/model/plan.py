"""Plans: exact distributions, commands and files as values. Showing a plan changes nothing."""

from __future__ import annotations

import shlex
from typing import Final, Literal

from envmedic.model.answers.content import EnvironmentClass
from envmedic.model.base import Model
from envmedic.model.checks import Check
from envmedic.model.conda import CondaChange
from envmedic.model.facts import Host, Origin
from envmedic.model.findings import Finding, Obstacle
from envmedic.model.pins import LiftedPin, NextSync, ProjectEdit
from envmedic.model.registries.faults import Fault
from envmedic.wording import counted

PLAN_SCHEMA: Final = "envmedic.plan/1"
Purpose = Literal["repair", "install", "snapshot"]
"""What a transaction is for: an installer's own command is `install`, a copy of an environment as it is `snapshot`."""
CONSTRAINTS: Final = "etc/envmedic/constraints.txt"
"""Where constraints for pip and uv stay, relative to the prefix."""
# Beside the pins, since conda reads `conda-meta/pinned` whole: it keeps the lines of a repair apart from the user's.
CONDA_PINS: Final = "etc/envmedic/conda-pins.txt"
"""Lines of ``conda-meta/pinned`` that hold what a repair put in place, and give way to a later one."""


class Artifact(Model, frozen=True, kw_only=True):
    """One exact wheel."""

    name: str
    version: str
    filename: str
    url: str
    """``https://…`` or ``file://…``, without credentials."""
    sha256: str
    size_bytes: int | None = None
    local_path: str
    """Path of the fetched and verified wheel in the wheel cache, which may not exist yet."""
    requires: tuple[str, ...] = ()


class InstalledReference(Model, frozen=True, kw_only=True):
    """An installed distribution that a step removes."""

    name: str
    version: str
    owner: str
    metadata_path: str
    size_bytes: int = 0


class Purge(Model, frozen=True, kw_only=True, tag="purge"):
    """Remove distributions through their installer, then leftovers, duplicates and orphans by path."""

    distributions: tuple[InstalledReference, ...] = ()
    leftovers: tuple[str, ...] = ()
    """Paths relative to the prefix."""
    by_path: tuple[InstalledReference, ...] = ()
    """Distributions that no installer can take away: of several copies, or without a sound list of their files. Their
    paths are among `leftovers`; files that they list and no other distribution does go too."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the distributions, each once."""
        return tuple(dict.fromkeys(item.name for item in (*self.distributions, *self.by_path)))

    def describe(self) -> str:
        """One line for people."""
        parts = [f"{item.name} {item.version}" for item in (*self.distributions, *self.by_path)]
        parts += [f"leftover {path}" for path in self.leftovers]
        return "remove " + ", ".join(parts)


class Install(Model, frozen=True, kw_only=True, tag="install"):
    """Install exact wheels, without resolving again and without dependencies."""

    artifacts: tuple[Artifact, ...]

    def describe(self) -> str:
        """One line for people."""
        return "install " + ", ".join(f"{item.name} {item.version}" for item in self.artifacts)


class Rebuild(Model, frozen=True, kw_only=True, tag="rebuild"):
    """Build a distribution again from its recorded source, with what is installed, and put the result in its place."""

    distribution: InstalledReference
    """The installed copy, which the new one replaces."""
    source: Origin
    """Where its source is: a directory, an archive, a repository, or (``index``) the source archive of that release."""
    workshop: str
    """Directory beside the environment in which it is built, and which is gone afterwards."""
    variables: dict[str, str] = {}
    """Variables of the build, in addition to those of the activated environment."""

    def requirement(self) -> str:
        """What an installer is asked to build: a copy of the directory, the repository or archive, or the release."""
        name, source = self.distribution.name, self.source
        # A copy in the workshop: a build writes into its source tree, which is the user's own.
        if source.kind == "directory":
            return f"{self.workshop}/src"
        # pip and uv verify an archive by the hash in the fragment of its URL, and find the project by `subdirectory`.
        marks = [f"sha256={source.sha256}"] if source.sha256 and source.kind == "archive" else []
        marks += [f"subdirectory={source.subdirectory}"] if source.subdirectory else []
        fragment = "#" + "&".join(marks) if marks else ""
        if source.kind == "vcs":
            revision = f"@{source.revision}" if source.revision else ""
            return f"{name} @ git+{source.url}{revision}{fragment}"
        if source.kind == "archive":
            return f"{name} @ {source.url}{fragment}"
        # The installer must not take a wheel here: `build_options` adds --no-binary.
        return f"{name}=={self.distribution.version}"

    def describe(self) -> str:
        """One line for people."""
        where = self.source.url or f"the source archive of {self.distribution.version}"
        told = "".join(f" {name}={value}" for name, value in sorted(self.variables.items()))
        return (
            f"rebuild {self.distribution.name} {self.distribution.version} from {where}{' with' if told else ''}{told}"
        )


class SetEnv(Model, frozen=True, kw_only=True, tag="set_env"):
    """Variables kept in the environment's activation scripts."""

    variables: dict[str, str]

    def describe(self) -> str:
        """One line for people."""
        return "set " + " ".join(f"{name}={value}" for name, value in sorted(self.variables.items()))


class UnsetEnv(Model, frozen=True, kw_only=True, tag="unset_env"):
    """Variables removed when the environment is activated."""

    names: tuple[str, ...]

    def describe(self) -> str:
        """One line for people."""
        return "unset " + " ".join(self.names)


class Pin(Model, frozen=True, kw_only=True, tag="pin"):
    """Constraints that stay with the environment after the repair."""

    constraints: tuple[str, ...]
    """Requirements, for installers of wheels."""
    conda: tuple[str, ...] = ()
    """Match specs, for conda: ``mkl <2024.1``."""
    keeps: bool = False
    """Whether it holds what a repair put in place, and gives way to a later repair."""

    def describe(self) -> str:
        """One line for people."""
        return "pin " + ", ".join((*self.constraints, *(f"{spec} (conda)" for spec in self.conda)))


class Relocate(Model, frozen=True, kw_only=True, tag="relocate"):
    """Let scripts, activation, settings and editable installs name the present path of a moved environment."""

    former: str
    """Where it was made."""
    programs: tuple[str, ...] = ()
    """Scripts that are run by its former path, relative to the prefix."""
    sources: dict[str, str] = {}
    """Present path of each directory of sources that moved with it, by the former one."""

    def describe(self) -> str:
        """One line for people."""
        also = "".join(f", and {old} to {new}" for old, new in sorted(self.sources.items()))
        count = f" of {counted(len(self.programs), 'script')}" if self.programs else ""
        return f"rewrite paths{count}, activation and settings from {self.former} to the environment's own{also}"


class MakeExecutable(Model, frozen=True, kw_only=True, tag="make_executable"):
    """Let programs be executed by all who may read them."""

    programs: tuple[str, ...]
    """Relative to the prefix."""

    def describe(self) -> str:
        """One line for people."""
        return f"make executable {', '.join(self.programs)}"


class ProgramScript(Model, frozen=True, kw_only=True):
    """A script in ``bin``."""

    path: str
    """Relative to the prefix."""
    entry_point: str | None = None
    """The function that it calls, as ``module:function``; None where only its first line is made again."""


class WriteScripts(Model, frozen=True, kw_only=True, tag="write_scripts"):
    """Write scripts again as an installer writes them, run by the environment's Python."""

    scripts: tuple[ProgramScript, ...]

    @property
    def programs(self) -> tuple[str, ...]:
        """Paths of the scripts, relative to the prefix."""
        return tuple(item.path for item in self.scripts)

    def describe(self) -> str:
        """One line for people."""
        return "write " + ", ".join(f"{item.path} ({item.entry_point or 'first line'})" for item in self.scripts)


class Advise(Model, frozen=True, kw_only=True, tag="advise"):
    """What the user has to do; never applied by envmedic."""

    text: str

    def describe(self) -> str:
        """One line for people."""
        return self.text


class ReplaceBase(Model, frozen=True, kw_only=True, tag="replace_base"):
    """Let a virtual environment be run by another Python of the host, of the same release series."""

    python: str
    """That Python."""
    programs: tuple[str, ...] = ()
    """Scripts that are run by the environment's Python, relative to the prefix."""

    def describe(self) -> str:
        """One line for people."""
        return f"lead bin/python and pyvenv.cfg to {self.python}"


class RunInstaller(Model, frozen=True, kw_only=True, tag="run_installer"):
    """The user's own command of an installer, run as it was given."""

    words: tuple[str, ...]
    """The command line, without secrets."""
    directory: str
    """Where it was given."""

    def describe(self) -> str:
        """One line for people."""
        return f"run {shlex.join(self.words)}"


FileRepair = Relocate | MakeExecutable | WriteScripts | ReplaceBase
"""Steps that repair files in place, without an installer."""
Step = (
    Purge
    | CondaChange
    | Install
    | Rebuild
    | SetEnv
    | UnsetEnv
    | Pin
    | Relocate
    | MakeExecutable
    | WriteScripts
    | ReplaceBase
    | RunInstaller
    | Advise
)


class Change(Model, frozen=True, kw_only=True):
    """One line of REMOVE / INSTALL / CHANGE."""

    kind: Literal["remove", "install", "change"]
    """What happens to it."""
    name: str
    """Of the distribution."""
    before: str | None = None
    """Installed version, null where there is none."""
    after: str | None = None
    """Version afterwards, null where it goes."""
    owner: str = ""
    """Who installed it."""
    size_bytes: int | None = None
    """Of the wheel or conda package, or of what is removed."""
    by: Literal["wheel", "conda"] = "wheel"
    """Subject of the line: a distribution installed or removed as a wheel, or a conda package."""
    package: str = ""
    """The conda package that brought it, where a wheel takes its place."""
    before_build: str = ""
    """Build string of the conda package that is installed."""
    after_build: str = ""
    """Build string of the new conda package."""
    channel: str = ""
    """Where the conda package comes from, or came from when it goes."""
    distributions: tuple[str, ...] = ()
    """Python distributions of the conda package."""


class PlanAlternative(Model, frozen=True, kw_only=True):
    """A set or a way that was considered and not chosen."""

    title: str
    why_not: str
    feasible: bool = True


class MoveCost(Model, frozen=True, kw_only=True):
    """What a way out of a conflict of requirements moves of what is installed: the fewer, and the less depends on them, the better."""

    moves: tuple[str, ...]
    """Installed distributions that change or go."""
    dependents: int
    """Number of installed distributions that accept these in the installed versions; one for what nothing requires."""
    majors: int
    """Number of those that get another major release."""
    downgrades: int
    """Number of those that get an older release."""
    new: int = 0
    """Number of distributions that come in addition."""
    own_majors: int = 0
    """Number of those with another major release that nothing installed requires: only programs of the user do."""


class PlanChoice(Model, frozen=True, kw_only=True):
    """Why a plan moves these distributions and no others."""

    cost: MoveCost
    """What it moves."""
    why: str
    """The comparison with the other ways, as a clause."""
    resolved: int
    """Number of ways whose solution was looked for."""
    cut: bool = False
    """Whether there are more ways, which a limit left unresolved."""


class Plan(Model, frozen=True, kw_only=True):
    """The document of ``envmedic plan --json``. `id` is the digest of everything else in it."""

    schema: Literal["envmedic.plan/1"] = PLAN_SCHEMA
    id: str = ""
    """SHA-256 of everything else in it, which ``apply`` checks."""
    envmedic: str
    """Version that made it."""
    data: str = ""
    """Version of the compatibility tables that it was made by."""
    created: str
    """RFC 3339, UTC."""
    prefix: str
    """The environment as the user named it, made absolute."""
    real_prefix: str
    """The environment with every symbolic link resolved."""
    # Exact steps are right for exactly the files that were seen.
    environment_digest: str
    """`Environment.digest` at planning time; apply refuses when it differs. Empty in a plan for a class."""
    for_class: EnvironmentClass | None = None
    """The class of environments that it is for (``--for-class``), at the same path on each machine; null where it is for
    this one alone."""
    class_plan: str = ""
    """Id of the plan for a class that this one was made from, where that was carried out."""
    purpose: Purpose = "repair"
    """What it is for."""
    text: str = ""
    """The user's words: the command line of an `install`, the text of a `snapshot`."""
    playbook: str | None
    """Id of the playbook that it follows."""
    playbook_sha256: str | None = None
    """Of that playbook's file."""
    fault: Fault | None
    """The class of the fault to be repaired."""
    finding: Finding | None = None
    """What says that the fault is there."""
    host: Host
    """The machine that it was planned for."""
    steps: tuple[Step, ...]
    """What changes, in order."""
    commands: tuple[tuple[str, ...], ...] = ()
    """argv of each command as it will run, in order, at the true path."""
    checks: tuple[Check, ...] = ()
    """Checks that prove the repair, and checks that only inform."""
    changes: tuple[Change, ...] = ()
    """The distributions that it removes, installs or changes."""
    stays: tuple[str, ...] = ()
    """``name version`` of what the plan keeps of the torch family and what is bound to it."""
    stays_count: int = 0
    """Number of all distributions that it keeps."""
    disk_bytes: int = 0
    """Upper estimate of extra disk space while both generations are kept."""
    download_bytes: int = 0
    """What is not in the wheel cache yet."""
    alternatives: tuple[PlanAlternative, ...] = ()
    """Sets and ways that were considered and not chosen."""
    choice: PlanChoice | None = None
    """Why these distributions move and no others; null where requirements left no choice."""
    notes: tuple[str, ...] = ()
    """What the user should know."""
    lifted: tuple[LiftedPin, ...] = ()
    """Pins of the user that it does not keep, as ``--allow pinned`` lets it."""
    next_sync: NextSync | None = None
    """What the project's own tool does to the environment afterwards; null where it does nothing, or nothing is known."""
    project_edit: ProjectEdit | None = None
    """What manifest and lock of the project would say to agree with it, and with the plans before it; null where they
    agree already or where that could not be made. Written only where the user says so (``--edit-project``)."""
    obstacles: tuple[Obstacle, ...] = ()
    """What would keep ``apply`` from beginning, or from proving a repair here."""
    unanswered: tuple[str, ...] = ()
    """The fault that the text reports, in one line, where this plan is about another and no fact would show its end."""
    further: tuple[str, ...] = ()
    """Confirmed faults beside it, each in one line, which further rounds of the repair take on."""
    took_before_s: float | None = None
    """How long the last repair of this environment took; null where there was none."""
    # A named playbook or a plan file is a decision of the user: a further round would go beyond it.
    extendable: bool = False
    """Whether the repair loop may extend it (never with ``--playbook`` or a plan file)."""
    gpu_checks: bool = False
    """Whether a GPU is needed to prove it."""
