"""Execution of a conda change in a clone: installation, verification and completion, for both installers."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from pathlib import Path

import msgspec

from envmedic.conda_meta import history, small_files
from envmedic.conda_meta import records as meta
from envmedic.conda_meta import specs as match_specs
from envmedic.conda_meta.packages import packages
from envmedic.conda_meta.records import PrefixRecord, Records
from envmedic.installers.conda.configuration import spec_matching
from envmedic.installers.conda.install import by_conda, by_rattler, install_verification
from envmedic.installers.conda.install.change_job import ChangeJob
from envmedic.model.conda import CondaChange, CondaPackage
from envmedic.model.events import Emit, Notice
from envmedic.model.ports import Runner
from envmedic.wording import counted

COMMAND = "envmedic apply"
"""Command named by the new revision in the history."""
_SCRIPTS = ("-post-link.sh", "-pre-link.sh")


def carry_out(change: CondaChange, prefix: Path, runner: Runner, emit: Emit, timeout_s: float | None) -> str:
    """Carry `change` out and return a summary. Raises InstallerError or IntegrityError.

    `prefix` is the environment's real path. A failed change stays half done: the caller drops the clone.
    """
    job = ChangeJob(change, prefix, runner, emit, timeout_s)
    before = meta.read(job.tree)
    install_verification.require_planned(before, change)
    # Read now: conda writes a revision of its own, with the explicit file as its command, which is replaced at the end.
    text = (small_files.read(job.tree / history.PATH) or b"").decode("utf-8", "surrogateescape")
    job.prepare()
    (by_conda if change.executor == "conda" else by_rattler).place(job)
    files = install_verification.verify(job.tree, before, change)
    after = meta.read(job.tree)
    # conda compiles by itself, and packages with scripts it was not given.
    if change.executor == "rattler":
        _compile(job, after)
        _tell_scripts(job, after)
    _finish(job, before, after, text)
    # An update is both removed and installed.
    went = len({item.name for item in change.remove} - {item.name for item in change.install})
    return f"{counted(len(change.install), 'package')} installed, {went} removed; {counted(files, 'file')} verified"


def _compile(job: ChangeJob, after: Records[PrefixRecord]) -> None:
    """Compile new noarch modules with the environment's Python, as conda does: such packages contain no byte code.

    A module that cannot be compiled (a template, code for a newer Python) gets none, also as with conda.
    """
    new = [after.packages[install_verification.record_file(item)] for item in job.change.install]
    files = [path for record in new if record.of_python for path, _ in record.files(after.site_packages)]
    modules = [str(job.seen / path) for path in files if path.endswith(".py") and path.startswith(after.site_packages)]
    if not modules:
        return
    listed = job.write("modules.txt", "".join(f"{path}\n" for path in modules))
    # Byte code names its source in tracebacks: -s and -p replace the path of the clone by the final one.
    moved = () if job.seen == job.prefix else ("-s", str(job.seen), "-p", str(job.prefix))
    job.run((str(job.runner.python), "-I", "-B", "-m", "compileall", "-q", *moved, "-i", listed))


def _tell_scripts(job: ChangeJob, after: Records[PrefixRecord]) -> None:
    """Emit a notice for each script of a new package, none of which was run."""
    for item in job.change.install:
        record = after.packages[install_verification.record_file(item)]
        for path, _ in record.files(after.site_packages):
            if path.startswith("bin/.") and path.endswith(_SCRIPTS):
                message = f"{path} of {item.name} was not run: scripts of packages can change what is not theirs"
                job.emit(Notice(code="link-script-not-run", message=message, level="warning"))


def _finish(job: ChangeJob, before: Records[PrefixRecord], after: Records[PrefixRecord], text: str) -> None:
    earlier = {item.name: item.requested for item in packages(before)}
    requested = _requested(job.change, earlier, after)
    now = tuple(
        msgspec.structs.replace(item, requested=requested.get(item.name, earlier.get(item.name, ())))
        for item in packages(after)
    )
    request = history.RevisionRequest(
        command=COMMAND,
        when=dt.datetime.now().astimezone(),
        update=job.change.specs,
        remove=job.change.remove_specs,
        before=packages(before),
    )
    revision = history.compose(text, now, request, spec_matching.matches)
    job.ask(
        "finish",
        packages=[
            {"record": install_verification.record_file(item), "requested": requested[item.name]}
            for item in job.change.install
        ],
        history=text + revision,
    )


def _requested(
    change: CondaChange, earlier: Mapping[str, tuple[str, ...]], after: Records[PrefixRecord]
) -> Mapping[str, tuple[str, ...]]:
    """Requested specs of each new package: those of the change, else those of the package it replaces, if still met."""
    asked = {match_specs.name_of(spec): (spec,) for spec in change.specs}
    new = set(map(install_verification.record_file, change.install))
    return {
        item.name: asked.get(item.name.lower()) or _still(earlier.get(item.name, ()), item)
        for item in packages(after)
        if item.record in new
    }


def _still(specs: tuple[str, ...], package: CondaPackage) -> tuple[str, ...]:
    """Earlier specs of a package; its present version instead if it no longer meets them."""
    try:
        answers = all(spec_matching.matches(spec, package) for spec in specs)
    except ValueError:
        answers = False
    return specs if answers else (f"{package.name}={package.version}",)
