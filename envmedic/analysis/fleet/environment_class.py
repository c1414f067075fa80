"""Classes of environments: those for which one plan is right. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from envmedic.model.answers.content import Content, EnvironmentClass
from envmedic.model.facts import Host, Interpreter

_NAMES = {"machine": "machine", "glibc": "C library", "python": "Python", "gpus": "GPUs", "driver": "driver branch"}


def class_of(host: Host, interpreter: Interpreter, content: Content) -> EnvironmentClass:
    """Return the class of an environment with that content on that host."""
    series = ".".join((interpreter.version or "unknown").split(".")[:2])
    threads = " free-threaded" if interpreter.free_threaded else ""
    return EnvironmentClass(
        content=content.digest,
        deep=content.deep,
        machine=host.machine,
        glibc=host.glibc,
        python=f"{interpreter.implementation or 'python'} {series}{threads}".lower(),
        gpus=tuple(sorted({gpu.compute_capability or "unknown" for gpu in host.gpus})),
        driver=host.driver_version.partition(".")[0] if host.driver_version else None,
    )


def class_differences(wanted: EnvironmentClass, found: EnvironmentClass) -> tuple[str, ...]:
    """Return in what an environment is of another class, in words; nothing where it is of the same."""
    machines = tuple(_machine(wanted, found))
    if wanted.content != found.content:
        return (*machines, f"content {found.content[:12]} in place of {wanted.content[:12]}")
    return machines


def _machine(wanted: EnvironmentClass, found: EnvironmentClass) -> Iterator[str]:
    for field, name in _NAMES.items():
        old, new = getattr(wanted, field), getattr(found, field)
        if old != new:
            yield f"{name} {_told(new)} in place of {_told(old)}"


def _told(value: str | tuple[str, ...] | None) -> str:
    return (", ".join(value) if isinstance(value, tuple) else value) or "none"
