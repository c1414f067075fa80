"""Installation by the user's own conda, of exact package files, so that its solver has nothing to decide."""

from __future__ import annotations

from pathlib import Path

from envmedic.conda_meta import records as meta
from envmedic.errors import InstallerError
from envmedic.installers.conda.configuration import client
from envmedic.installers.conda.install.change_job import WORK, ChangeJob, failed
from envmedic.model.conda import CondaChange

Argv = tuple[str, ...]
_SCRIPTS = ("-pre-unlink.sh", "-post-unlink.sh")
_FLAGS = ("--yes", "--offline", "--quiet")
_EXPLICIT = "explicit.txt"


def program(prefix: Path) -> Path:
    """The user's conda for the environment at `prefix`. Raises InstallerError where there is none."""
    found = client.find(prefix)
    if found is None:
        raise InstallerError(
            "No conda was found",
            cause="neither CONDA_EXE, nor the installation that the environment belongs to, nor PATH has one",
            hint="Leave --installer conda out: py-rattler does the same without it",
        )
    return found


def commands(change: CondaChange, prefix: str, conda: Path) -> tuple[Argv, ...]:
    """Argv of each command: removal of packages without successor or with the same build, then one explicit install."""
    new = {item.name: (item.version, item.build) for item in change.install}
    gone = [item.name for item in change.remove if new.get(item.name) in {None, (item.version, item.build)}]
    base = (f"--prefix={prefix}", *_FLAGS)
    # --force: without it conda would remove the dependents too. An explicit install of the build that is installed does
    # nothing, hence the removal.
    remove = ((str(conda), "remove", *base, "--force", *gone),) if gone else ()
    explicit = f"--file={prefix}/{WORK}/{_EXPLICIT}"
    return (*remove, *(((str(conda), "install", *base, explicit),) if new else ()))


def place(job: ChangeJob) -> None:
    """Run the commands; `carry_out` verifies and completes the change. Raises InstallerError."""
    if job.seen != job.prefix:
        raise InstallerError(
            "conda cannot work in a copy of the environment at another path",
            cause="it would write that path into programs and libraries, where it cannot be replaced afterwards",
            hint="Leave --installer conda out, or use --staging namespace where the host allows it",
        )
    conda = program(job.prefix)
    archives = {item.filename: str(job.archive(item)) for item in job.change.install}
    _refuse_scripts(job, list(archives.values()))
    # A package cache for this change alone: unpacked packages in the user's own cache may have been edited through hard
    # links.
    folder = job.work / "packages"
    job.ask(
        "stock",
        folder=str(folder),
        explicit=str(job.work / _EXPLICIT),
        # The form of `conda list --explicit --md5`: conda compares the hash with its cache.
        lines=[f"{item.url}#{item.md5}" if item.md5 else item.url for item in job.change.install],
        packages=[
            {"archive": archives[item.filename], "filename": item.filename, "url": item.url}
            for item in job.change.install
        ],
    )
    # Nothing of the user's configuration may report to a server, update conda, or turn the run into a dry one.
    env = {"CONDA_PKGS_DIRS": str(folder), "CONDA_REPORT_ERRORS": "false", "CONDA_NOTIFY_OUTDATED_CONDA": "false",
           "CONDA_AUTO_UPDATE_CONDA": "false", "CONDA_JSON": "false", "CONDA_DRY_RUN": "false"}  # fmt: skip
    for argv in commands(job.change, str(job.seen), conda):
        result = job.run(argv, env=env)
        if result.returncode != 0:
            raise failed(result)


def _refuse_scripts(job: ChangeJob, archives: list[str]) -> None:
    """Raise InstallerError for packages with scripts: conda runs them, and has no option against it."""
    found = [name for names in job.ask("scripts", archives=archives)["scripts"].values() for name in names]
    installed, gone = meta.read(job.tree), {item.record for item in job.change.remove}
    for where in gone & set(installed.packages):
        paths = (path for path, _ in installed.packages[where].files(installed.site_packages))
        found += [path for path in paths if path.startswith("bin/.") and path.endswith(_SCRIPTS)]
    if found:
        raise InstallerError(
            "conda would run scripts of packages",
            cause=f"{', '.join(sorted(found))}: a script can change what is outside of the copy under repair",
            hint="Leave --installer conda out: py-rattler does not run them",
        )
