"""Facts: of this host or from a file, and of an environment."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

import msgspec

from envmedic import __version__
from envmedic.api.context.settings import Settings
from envmedic.errors import InputError
from envmedic.model.base import from_json, to_json
from envmedic.model.events import EventStream, Stage, StageFinished, StageStarted
from envmedic.model.facts import Environment, Facts, Host

if TYPE_CHECKING:
    from envmedic.probe.prefix.begun import Begun


@contextmanager
def stage(stream: EventStream, name: Stage) -> Iterator[None]:
    """Tell the stream when a stage starts and ends."""
    started = monotonic()
    stream.emit(StageStarted(stage=name))
    ok = False
    try:
        yield
        ok = True
    finally:
        stream.emit(StageFinished(stage=name, seconds=monotonic() - started, ok=ok))


@contextmanager
def beginning(settings: Settings, prefix: Path | None) -> Iterator[Begun | None]:
    """What of an observation runs outside of this process, begun; None where there is no prefix."""
    if prefix is None:
        yield None
        return
    from envmedic.probe.prefix.begun import Begun  # noqa: PLC0415  # a text alone needs no probe

    with closing(Begun(prefix, settings.ahead)) as begun:
        yield begun


def observe(
    settings: Settings,
    prefix: Path | None,
    begun: Begun | None = None,
    *,
    meanwhile: Callable[[], None] | None = None,
) -> Facts:
    """Observe the host and, where `prefix` is given, the environment there. Writes nothing.

    `begun` is the beginning of it, where that was made before; `meanwhile` may be called while something is
    waited for.
    """
    if settings.apart and prefix is not None:
        from envmedic.api.context.subprocess_probe import observe_apart  # noqa: PLC0415  # for front ends that ask for it

        with stage(settings.stream, "probe"):
            return observe_apart(settings, prefix)
    given = None if settings.host_file is None else read_host(Path(settings.host_file))  # first: it may be wrong
    with stage(settings.stream, "probe"):
        if given is not None:
            return Facts(envmedic=__version__, host=given, environment=_environment(settings, prefix, begun, meanwhile))
        from envmedic.forked import Forked  # noqa: PLC0415  # a text alone needs no process

        with closing(Forked(_this_host)) as host:  # meanwhile: most of it is waiting for the driver's answer
            environment = _environment(settings, prefix, begun, meanwhile)
            return Facts(envmedic=__version__, host=host.value(), environment=environment)


def _environment(
    settings: Settings, prefix: Path | None, begun: Begun | None, meanwhile: Callable[[], None] | None
) -> Environment | None:
    if prefix is None:
        return None
    from envmedic.probe.environment import observe_environment  # noqa: PLC0415
    from envmedic.probe.prefix.begun import Begun  # noqa: PLC0415  # a text alone needs no probe

    begun = begun or Begun(prefix, settings.ahead)
    return observe_environment(prefix, deep=settings.deep, begun=begun, meanwhile=meanwhile)


def observe_clone(settings: Settings, tree: Path, prefix: Path) -> Environment:
    """Observe the clone at `tree` of the environment at `prefix` as it will be there: what names the one names the other.

    Variables of this process that lead into the environment lead into the clone.
    """
    if settings.apart:
        from envmedic.api.context.subprocess_probe import observe_clone_apart  # noqa: PLC0415  # for front ends that ask for it

        return observe_clone_apart(settings, tree, prefix)
    from envmedic.probe.environment import observe_environment  # noqa: PLC0415

    deep = settings.deep
    if tree == prefix:
        return observe_environment(prefix, deep=deep)
    variables = {name: value.replace(str(prefix), str(tree)) for name, value in os.environ.items()}
    text = to_json(observe_environment(tree, variables, deep=deep), indent=0)
    seen, wanted = (msgspec.json.encode(str(path)).decode()[1:-1] for path in (tree, prefix))
    return from_json(text.replace(seen, wanted), Environment, source="the observed clone")


def host_of(settings: Settings) -> Host:
    """The host of ``--host FILE``, else this one."""
    return _this_host() if settings.host_file is None else read_host(Path(settings.host_file))


def _this_host() -> Host:
    from envmedic.probe.machine.host import observe_host  # noqa: PLC0415

    return observe_host()


def read_host(path: Path) -> Host:
    """The host of a facts document. Raises InputError when `path` is unreadable or something else."""
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
