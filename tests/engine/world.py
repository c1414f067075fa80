"""Small environments with a real interpreter, a real installer for them, and runs that end by SIGKILL."""

from __future__ import annotations

import hashlib
import os
import signal
import sys
import traceback
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from envmedic.engine.generations.generations import prune, redo, undo
from envmedic.engine.generations.recovery import recover
from envmedic.engine.store.context import TransactionContext
from envmedic.engine.store.swap import no_point
from envmedic.engine.transaction.transaction import apply
from envmedic.model.checks import Check, Outcome, Phase
from envmedic.model.events import CheckFinished, Emit, Event, EventData, EventStream
from envmedic.model.facts import Environment, Host
from envmedic.model.findings import Finding
from envmedic.model.pins import EditedFile, ProjectEdit
from envmedic.model.plan import Artifact, Change, Install, InstalledReference, Plan, Purge, Rebuild, Step
from envmedic.model.ports import (
    ApplyOptions,
    CheckRunner,
    EnginePorts,
    Exchange,
    ExtendRequest,
    PlanExtension,
    ProcessUser,
    Resolution,
    ResolveRequest,
    Runner,
)
from envmedic.model.record import DistributionState, KeepLimits, Left, Record
from envmedic.tree import fingerprint

SITE = f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
Point = Callable[[str], None]

REMOVE = """
import pathlib, shutil, sys, sysconfig
site = pathlib.Path(sysconfig.get_path("purelib"))
for path in [site / sys.argv[1], *site.glob(sys.argv[1] + "-*.dist-info")]:
    shutil.rmtree(path)
"""
ADD = r"""
import pathlib, sys, sysconfig
site = pathlib.Path(sysconfig.get_path("purelib"))
name, version = sys.argv[1:]
(site / name).mkdir()
(site / name / "__init__.py").write_text(f"__version__ = {version!r}\n")
info = site / f"{name}-{version}.dist-info"
info.mkdir()
(info / "METADATA").write_text(f"Name: {name}\nVersion: {version}\n")
(info / "RECORD").write_text(f"{name}/__init__.py,,\n{info.name}/METADATA,,\n")
first = f"#!{sys.executable}\n"
if " " in first:
    first = f"#!/bin/sh\n'''exec' \"{sys.executable}\" \"$0\" \"$@\"\n' '''\n"
script = pathlib.Path(sys.prefix, "bin", name)
script.unlink(missing_ok=True)
script.write_text(f"{first}import {name}\nprint({name}.__version__)\n")
script.chmod(0o755)
print("added", name, version)
"""


def make_environment(prefix: Path) -> Path:
    """A venv as the standard library makes it, with a package that does not import and some bystanders."""
    (prefix / "bin").mkdir(parents=True)
    base = Path(sys.executable).resolve()
    (prefix / "bin" / "python").symlink_to(base)
    (prefix / "bin" / "python3").symlink_to("python")
    (prefix / "pyvenv.cfg").write_text(f"home = {base.parent}\ninclude-system-site-packages = false\n")
    for script in ("activate", "activate.csh", "activate.fish"):
        (prefix / "bin" / script).write_text(f"# {script} of {prefix}\n")
    site = prefix / SITE
    site.mkdir(parents=True)
    (prefix / "lib64").symlink_to("lib")
    write_package(site, "fam", "1.0", "raise ImportError('built for another torch')\n")
    for number in range(6):
        write_package(site, f"other{number}", "3.1", f"value = {number}\n")
        (site / f"other{number}" / "data").mkdir()
        (site / f"other{number}" / "data" / "edited by hand.txt").write_text("mine\n")
    (site / "other0" / "data" / "edited by hand.txt").chmod(0o440)
    (site / "other0" / "data").chmod(0o555)
    (prefix / "bin" / "fam").write_text(f"#!{prefix}/bin/python\nimport fam\n")
    (prefix / "bin" / "fam").chmod(0o755)
    for path in [*prefix.rglob("*"), prefix]:
        os.utime(path, ns=(1_600_000_000_000_000_000, 1_600_000_000_123_456_789), follow_symlinks=False)
    return prefix


def write_package(site: Path, name: str, version: str, source: str) -> None:
    (site / name).mkdir()
    (site / name / "__init__.py").write_text(source)
    info = site / f"{name}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Name: {name}\nVersion: {version}\n")
    (info / "RECORD").write_text(f"{name}/__init__.py,,\n")


class TinyInstaller:
    """Installs packages of one module by running the environment's own Python."""

    def __init__(self) -> None:
        self.fetched: list[str] = []

    def resolve(self, request: ResolveRequest, environment: Environment, emit: Emit) -> Resolution:
        raise NotImplementedError

    def fetch(self, artifacts: Sequence[Artifact], *, offline: bool, emit: Emit) -> None:  # noqa: ARG002  # the port's
        self.fetched += [artifact.name for artifact in artifacts]

    def commands(self, step: Purge | Install, python: str) -> tuple[tuple[str, ...], ...]:
        if isinstance(step, Purge):
            return tuple((python, "-c", REMOVE, item.name) for item in step.distributions)
        return tuple((python, "-c", ADD, item.name, item.version) for item in step.artifacts)

    def check_command(self, python: str) -> tuple[str, ...]:
        return (python, "-c", "pass")

    def build_command(self, step: Rebuild, python: str) -> tuple[str, ...]:
        raise NotImplementedError


def run_python_checks(checks: Sequence[Check], runner: Runner, phase: Phase, emit: Emit) -> tuple[Outcome, ...]:
    """Each check runs its one argument as Python code; any failure to exit with 0 is a failed check."""
    outcomes = []
    for check in checks:
        result = runner([str(runner.python), "-B", "-c", check.arguments[0]], timeout_s=60)
        last = (result.stderr.strip().splitlines() or [""])[-1]
        outcomes.append(outcome(check, ok=result.returncode == 0, reason=last))
        emit(CheckFinished(phase=phase, outcome=outcomes[-1]))
    return tuple(outcomes)


def outcome(check: Check, *, ok: bool, reason: str = "") -> Outcome:
    return Outcome(check=check.name, status="pass" if ok else "fail", role=check.role, device="cpu", reason=reason)


def distributions(root: Path) -> tuple[DistributionState, ...]:
    names = sorted(path.name.removesuffix(".dist-info") for path in (root / SITE).glob("*.dist-info"))
    return tuple(
        DistributionState(name=name.rpartition("-")[0], version=name.rpartition("-")[2], owner="pip") for name in names
    )


def nobody(_prefix: Path) -> tuple[ProcessUser, ...]:
    return ()


@dataclass
class World:
    """One environment with all that is needed to repair it."""

    prefix: Path
    options: ApplyOptions = ApplyOptions()  # noqa: RUF009  # frozen
    installer: TinyInstaller = field(default_factory=TinyInstaller)
    events: list[EventData] = field(default_factory=list)
    confirm: Callable[[Plan], bool] = lambda _plan: True
    extend: Callable[[ExtendRequest], PlanExtension | None] | None = None
    observe: Callable[[Path], Environment] | None = None
    accept_partial: Callable[[tuple[Left, ...]], bool] | None = None
    before_exchange: Callable[[Exchange], bool] | None = None
    processes: Callable[[Path], tuple[ProcessUser, ...]] = nobody
    gpu: tuple[bool, str] = (False, "no driver")
    host: Host | None = None
    unaffected: Callable[[Path, Path, Collection[str], Collection[str]], frozenset[str]] | None = None
    checks: CheckRunner = run_python_checks
    project_edit: ProjectEdit | None = None
    """What each plan writes into the project around the environment, wanted by its user."""
    also: tuple[Step, ...] = ()
    """Steps of each plan after those that replace fam."""

    @property
    def store(self) -> Path:
        return self.prefix.parent / ".envmedic"

    @property
    def site(self) -> Path:
        return self.prefix / SITE

    def ports(self) -> EnginePorts:
        return EnginePorts(
            installer=lambda: self.installer,
            distributions=distributions,
            processes=self.processes,
            gpu_visible=lambda: self.gpu,
            confirm=self.confirm,
            extend=self.extend,
            observe=self.observe,
            accept_partial=self.accept_partial,
            edits_project=lambda _edit: True,
            before_exchange=self.before_exchange,
            host=None if self.host is None else lambda: self.host or Host(),
            unaffected=self.unaffected,
        )

    def stream(self) -> EventStream:
        return EventStream([self._keep])

    def _keep(self, event: Event) -> None:
        self.events.append(event.data)

    def plan(self, *steps: Step, version: str = "2.0", **changes: object) -> Plan:
        plan = Plan(
            id=f"plan-{version}",
            envmedic="0",
            created="2026-01-01T00:00:00Z",
            prefix=str(self.prefix),
            real_prefix=os.path.realpath(self.prefix),
            environment_digest=fingerprint.digest(self.prefix),
            playbook="nms-cuda",
            fault="torchvision-ops",
            finding=finding(),
            host=Host(),
            steps=steps or (*replacement(version), *self.also),
            checks=(Check(name="fam-imports", role="playbook", arguments=("import fam",)),),
            changes=(Change(kind="change", name="fam", before="1.0", after=version),),
            project_edit=self.project_edit,
        )
        return msgspec.structs.replace(plan, **changes)

    def apply(self, plan: Plan | None = None, *, point: Point = no_point, **more: object) -> Record:
        return apply(
            plan or self.plan(),
            options=self.options,
            ports=self.ports(),
            checks=self.checks,
            stream=self.stream(),
            point=point,
            **more,  # type: ignore[arg-type]
        )

    def undo(self, *, point: Point = no_point, **more: object) -> Record:
        return undo(self._session(point), **more)  # type: ignore[arg-type]

    def redo(self, *, point: Point = no_point, **more: object) -> Record:
        return redo(self._session(point), **more)  # type: ignore[arg-type]

    def _session(self, point: Point) -> TransactionContext:
        return TransactionContext.of(self.prefix, self.options, self.ports(), self.checks, self.stream(), point=point)

    def recover(self, *, point: Point = no_point) -> tuple[Record, ...]:
        return recover(self.prefix, ports=self.ports(), checks=self.checks, stream=self.stream(), point=point)

    def prune(self, keep: int, *, drop_new: bool = False, point: Point = no_point) -> tuple[str, ...]:
        return prune(
            self.prefix,
            limits=KeepLimits(count=keep),
            stream=self.stream(),
            drop_new=lambda _trees: drop_new,
            point=point,
        )

    def version(self) -> str:
        """The version of fam that the files at the prefix are of."""
        return next(item.version for item in distributions(self.prefix) if item.name == "fam")


def project_around(prefix: Path, member: str = "") -> ProjectEdit:
    """Write manifest and lock beside an environment, the manifest below `member`; returns what is to become of them."""
    files = []
    for base, sides in PROJECT.items():
        name = f"{member}{base}" if base == "pyproject.toml" else base
        path = prefix.parent / name
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(sides[0])
            path.chmod(0o640)
        digests = [hashlib.sha256(content).hexdigest() for content in sides]
        after = sides[1].decode()
        files.append(EditedFile(name=name, before_sha256=digests[0], after_sha256=digests[1], after=after, diff=""))
    return ProjectEdit(folder=str(prefix.parent), command=("uv", "add", "fam==2.0"), files=tuple(files))


PROJECT = {
    "pyproject.toml": (b'dependencies = ["fam"]\n', b'dependencies = ["fam==2.0"]\n'),
    "uv.lock": (b'fam = "1.0"\n', b'fam = "2.0"\n'),
}
"""Files of a project before a repair and after it."""


def finding(*, confirmed: bool | None = True) -> Finding:
    return Finding(
        fault="torchvision-ops",
        playbook="nms-cuda",
        signature=None,
        confidence=0.9,
        confirmed=confirmed,
        summary="fam is built for another torch",
        fix_kind="reinstall-matching-wheel",
    )


def replacement(version: str, *, before: str = "1.0") -> tuple[Step, ...]:
    old = InstalledReference(name="fam", version=before, owner="pip", metadata_path=f"{SITE}/fam-{before}.dist-info")
    return (Purge(distributions=(old,)), Install(artifacts=(artifact("fam", version),)))


def artifact(name: str, version: str) -> Artifact:
    return Artifact(
        name=name,
        version=version,
        filename=f"{name}-{version}-py3-none-any.whl",
        url=f"file:///wheels/{name}-{version}-py3-none-any.whl",
        sha256="0" * 64,
        local_path=f"/wheels/{name}-{version}-py3-none-any.whl",
    )


_ADD = (
    "cd '{site}'; mkdir {item.name} {item.name}-{item.version}.dist-info; "
    "echo '__version__ = \"{item.version}\"' > {item.name}/__init__.py; "
    "echo {item.name}-{item.version}.dist-info/METADATA,, > {item.name}-{item.version}.dist-info/RECORD"
)


class ShellInstaller(TinyInstaller):
    """The same with ``/bin/sh``, which starts faster: for the many runs of the crash tests."""

    def commands(self, step: Purge | Install, python: str) -> tuple[tuple[str, ...], ...]:
        site = f"{python.removesuffix('/bin/python')}/{SITE}"
        if isinstance(step, Purge):
            return tuple(
                ("/bin/sh", "-ec", f"rm -r '{site}/{item.name}' '{site}/{item.name}-{item.version}.dist-info'")
                for item in step.distributions
            )
        return tuple(("/bin/sh", "-ec", _ADD.format(site=site, item=item)) for item in step.artifacts)


def run_file_checks(checks: Sequence[Check], runner: Runner, phase: Phase, emit: Emit) -> tuple[Outcome, ...]:
    """Every check passes when fam's module holds a version; starts no process, so only for staging by relocation."""
    module = runner.python.parent.parent / SITE / "fam" / "__init__.py"
    ok = module.read_text().startswith("__version__")
    outcomes = tuple(outcome(check, ok=ok) for check in checks)
    for item in outcomes:
        emit(CheckFinished(phase=phase, outcome=item))
    return outcomes


def fails_in_place(world: World) -> CheckRunner:
    """`run_file_checks`, but the smoke check finds the repaired environment broken at its own path."""

    def run(checks: Sequence[Check], runner: Runner, phase: Phase, emit: Emit) -> tuple[Outcome, ...]:
        outcomes = run_file_checks(checks, runner, phase, emit)
        marked = phase == "smoke" and (world.prefix / fingerprint.MARKER).exists()
        return tuple(msgspec.structs.replace(item, status="fail") for item in outcomes) if marked else outcomes

    return run


def die() -> None:
    """End this process by SIGKILL."""
    os.kill(os.getpid(), signal.SIGKILL)


class Crash:
    """A `Point` that ends the process by SIGKILL, or calls `act`, when it is reached for the nth time, from 0.

    With `names` only the points called so count.
    """

    def __init__(self, at: int, names: Collection[str] = (), act: Callable[[], object] = die) -> None:
        self._left = at
        self._names = names
        self._act = act

    def __call__(self, name: str) -> None:
        if self._names and name not in self._names:
            return
        if self._left == 0:
            self._act()
        self._left -= 1


def in_child(work: Callable[[], object]) -> bool:
    """Run `work` in a forked process; whether it came to its end rather than to SIGKILL.

    Any other end is an error of the test.
    """
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException:  # noqa: BLE001  # reported by the exit status
            traceback.print_exc()
        finally:
            os._exit(code)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert status in {0, -signal.SIGKILL}, f"the child ended with {status}"
    return status == 0
