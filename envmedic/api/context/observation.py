"""Observation of facts: of this host or of a facts file, and of an environment."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic

import msgspec

from envmedic import __version__, forked
from envmedic.api.context.settings import Settings
from envmedic.compat import tables
from envmedic.errors import InputError
from envmedic.model.base import from_json, to_json
from envmedic.model.events import EventStream, Notice, Stage, StageFinished, StageStarted
from envmedic.model.facts import Environment, Facts, Host
from envmedic.probe.content_files import observe_content
from envmedic.probe.environment import observe_environment
from envmedic.probe.machine.host import observe_host


@contextmanager
def stage(stream: EventStream, name: Stage) -> Iterator[None]:
    """Emit the start and the end of a stage."""
    started = monotonic()
    stream.emit(StageStarted(stage=name))
    ok = False
    try:
        yield
        ok = True
    finally:
        stream.emit(StageFinished(stage=name, seconds=monotonic() - started, ok=ok))


def observe(settings: Settings, prefix: Path | None, *, meanwhile: Callable[[], None] | None = None) -> Facts:
    """Observe the host and, if `prefix` is given, the environment there. Writes nothing.

    `meanwhile` is called while other processes read the environment, if any do.

    Raises InputError for an unusable file of ``--host``, NotAnEnvironment if there is none at `prefix`.
    """
    with stage(settings.stream, "probe"):
        if settings.observer is not None and prefix is not None:
            return settings.observer.observe(settings, prefix)
        if settings.host_file is not None or prefix is None:
            host = host_of(settings)  # first: the file of --host may be wrong
            environment = None if prefix is None else _environment(settings, prefix)
            return _facts(settings, host, environment)
        # To observe the host is mostly to wait for the driver's answer.
        with forked.begun(observe_host) as asked:
            environment = _environment(settings, prefix, meanwhile)
            return _facts(settings, asked.value(), environment)


def observe_contents(settings: Settings, facts: Facts) -> Facts:
    """Return `facts` with the content of their environment, if they have one. Raises OSError."""
    if facts.environment is None:
        return facts
    with stage(settings.stream, "probe"):
        return msgspec.structs.replace(facts, content=observe_content(facts.environment, deep=settings.deep))


def _facts(settings: Settings, host: Host, environment: Environment | None) -> Facts:
    for item in tables.chosen().ignored:
        if item.damaged:
            message = f"the data file {item.path} is not used: {item.reason}; see `envmedic data status`"
            settings.stream.emit(Notice(code="data-ignored", message=message, level="warning"))
    return Facts(
        envmedic=__version__, host=host, environment=environment, tables=tables.written(), data=tables.version()
    )


def _environment(settings: Settings, prefix: Path, meanwhile: Callable[[], None] | None = None) -> Environment:
    found = observe_environment(prefix, deep=settings.deep, meanwhile=meanwhile, named=not settings.unnamed)
    if settings.unnamed and found.interpreter.answers is None:
        message = (
            f"its Python is not started, since it is none of yours or of the system's outside of the project: its files "
            f"alone are read. To have it asked: -p {shlex.quote(str(prefix))}"
        )
        settings.stream.emit(Notice(code="files-alone", message=message))
    return found


def observe_clone(settings: Settings, tree: Path, prefix: Path) -> Environment:
    """Observe the clone at `tree` of the environment at `prefix`, with all its paths as they will be at `prefix`."""
    if settings.observer is not None:
        return settings.observer.observe_clone(settings, tree, prefix)
    deep = settings.deep
    if tree == prefix:
        return observe_environment(prefix, deep=deep)
    # PYTHONPATH, LD_LIBRARY_PATH and others of this process may lead into the environment; for the clone they must
    # lead into the clone, or its facts would be those of the live files
    variables = {name: value.replace(str(prefix), str(tree)) for name, value in os.environ.items()}
    text = to_json(observe_environment(tree, variables, deep=deep, known_as=prefix), indent=0)
    # replaced in the JSON, where every path of every fact is found, in the spelling of JSON strings
    seen, wanted = (msgspec.json.encode(str(path)).decode()[1:-1] for path in (tree, prefix))
    return from_json(text.replace(seen, wanted), Environment, source="the observed clone")


def host_of(settings: Settings) -> Host:
    """Return the host of ``--host FILE``, else this machine."""
    return observe_host() if settings.host_file is None else read_host(Path(settings.host_file))


def read_host(path: Path) -> Host:
    """Return the host in a facts document. Raises InputError if `path` is unreadable or another document."""
    try:
        text = path.read_bytes()
    except OSError as error:
        raise InputError(
            f"The facts file {path} cannot be read",
            cause=error.strerror,
            hint="Write it on the other host with `envmedic facts --host-only --json`",
        ) from error
    hint = "Write it on the other host with `envmedic facts --host-only --json`"
    facts = from_json(text, Facts, source=f"The facts file {path}", hint=hint)
    return msgspec.structs.replace(facts.host, source=str(path))
