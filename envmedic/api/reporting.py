"""Use case ``report``: a repair in short, to be shown to others."""

from __future__ import annotations

import getpass
import os
import pwd
import re
import shlex
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from envmedic import xdg
from envmedic.api.context.target import EnvironmentTarget
from envmedic.engine.store import journal as journals
from envmedic.engine.store.context import load_record
from envmedic.engine.store.layout import Store
from envmedic.errors import InputError
from envmedic.model.answers.report import Report, ReportedCheck, ReportForm
from envmedic.model.checks import Outcome
from envmedic.model.facts import Host
from envmedic.model.record import DistributionChange, Record
from envmedic.redact import redact_text

FILES: dict[ReportForm, str] = {
    "markdown": "envmedic-report.md",
    "svg": "envmedic-report.svg",
    "html": "envmedic-report.html",
}
"""Names of the files, where a directory is given."""


def report(prefix: Path, transaction: str | None = None) -> Report:
    """Return the report on a transaction of the environment at `prefix`, by default the newest. Raises InputError."""
    store = Store.of(EnvironmentTarget.of(prefix).real)
    known = {item.transaction: item for item in store.transactions()}
    again = f"envmedic history -p {shlex.quote(str(prefix))}"
    if not known:
        raise InputError(f"There is no repair of {prefix} to report", hint=f"`{again}` lists them")
    if transaction is not None and transaction not in known:
        raise InputError(f"There is no transaction {transaction} of {prefix}", hint=f"`{again}` lists them")
    directory = known[transaction or max(known)]
    return of_record(load_record(directory, journals.read(directory)))


def write(texts: Mapping[Path, str]) -> list[Path]:
    """Write files, and return their paths. Raises InputError."""
    for path, text in texts.items():
        _write(path, text)
    return list(texts)


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"The report {path} cannot be written", cause=error.strerror, hint="Name another file or directory"
        ) from error


def of_record(record: Record) -> Report:
    """Return the report on a record, without secrets and the names of directories that are the user's own."""
    plan = (record.plan, *record.extensions)
    finding = record.plan.finding
    texts = [item.what for item in finding.evidence if item.kind == "text"] if finding is not None else []
    earlier = {item.key: item for item in record.checks_before}
    at_work = record.environment in {"repaired", "installed"}
    made = Report(
        transaction=record.transaction,
        envmedic=record.envmedic,
        finished=record.finished,
        outcome=record.outcome or "unchanged",
        undone=record.environment == "restored",
        wrong=finding.summary if finding is not None else record.plan.text or "Nothing was wrong: torch was moved",
        fault=record.plan.fault,
        error=texts[0] if texts else None,
        changes=_changes(record),
        unchanged=len({item.name for item in record.before} & {item.name for item in record.after}),
        steps=tuple(step.describe() for item in plan for step in item.steps),
        checks=tuple(_check(earlier.get(item.key), item) for item in record.checks_after),
        gpu=record.gpu + (f" ({record.gpu_reason})" if record.gpu_reason else ""),
        program=record.program,
        left=tuple(f"{item.summary}: {item.why}" for item in record.left),
        failure=record.failure.summary if record.failure is not None else None,
        seconds=record.seconds,
        machine=_machine(record.plan.host),
        undo=_undo(record.prefix) if at_work else None,
    )
    made = msgspec.structs.replace(
        made, unchanged=made.unchanged - sum(bool(item.before and item.after) for item in made.changes)
    )
    names = _names(record.prefix)
    return msgspec.convert(_mapped(msgspec.to_builtins(made), lambda text: _shared(text, names)), Report)


def _changes(record: Record) -> tuple[DistributionChange, ...]:
    before, after = ({item.name: item.version for item in side} for side in (record.before, record.after))
    return tuple(
        DistributionChange(name=name, before=before.get(name), after=after.get(name))
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name)
    )


def _check(before: Outcome | None, after: Outcome) -> ReportedCheck:
    return ReportedCheck(
        check=after.check,
        device=after.device,
        before=before.status if before is not None else None,
        after=after.status,
        seconds=round(after.seconds, 2),
        reason=after.reason if after.status != "pass" else "",
    )


def _machine(host: Host) -> tuple[str, ...]:
    gpus = [f"{item.name}{f' ({item.compute_capability})' if item.compute_capability else ''}" for item in host.gpus]
    driver = f"driver {host.driver_version}" if host.driver_version else "no NVIDIA driver"
    return (", ".join(gpus) or "no GPU", driver)


def _undo(prefix: str) -> str:
    """A command that runs as it is shown: without the path, in the activated environment, where that has names."""
    place = _place(prefix)
    hidden = _shared(place, _names(prefix)) != place
    return 'envmedic undo -p "${VIRTUAL_ENV:-$CONDA_PREFIX}"' if hidden else f"envmedic undo -p {place}"


def _place(prefix: str) -> str:
    """The prefix as a word of a command line, below ``~`` where it is in the home directory."""
    home = str(xdg.home())
    # the tilde outside of quotes, where a shell replaces it
    return f"~{shlex.quote(prefix.removeprefix(home))}" if prefix.startswith(home + "/") else shlex.quote(prefix)


def _shared(text: str, names: Collection[str]) -> str:
    """`text` without secrets, the home directory, and the names of users in paths."""
    clean = redact_text(text)
    home = str(xdg.home())
    if home != "/":
        clean = re.sub(rf"{re.escape(home)}(?=\W|$)", "~", clean)
    users = "|".join(map(re.escape, sorted(names)))
    return re.sub(rf"(?<=/)(?:{users})(?=[/\s'\"]|$)|(?<=/home/)[^/\s'\"]+", "USER", clean)


def _names(prefix: str) -> set[str]:
    """The user and the owner of the environment, who may be another one where root repairs it."""
    names = {os.environ.get("SUDO_USER", ""), *(_name_of(uid) for uid in _owners(prefix))}
    with suppress(KeyError, OSError):  # a number that no name belongs to
        names.add(getpass.getuser())
    return names - {""}


def _owners(prefix: str) -> set[int]:
    owners = {os.getuid()}
    with suppress(OSError):  # it may be gone since
        owners.add(os.stat(prefix).st_uid)  # noqa: PTH116  # paths of documents are texts
    return owners


def _name_of(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _mapped(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {key: _mapped(item, change) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_mapped(item, change) for item in value]
    return value
