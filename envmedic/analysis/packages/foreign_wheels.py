"""Distributions that come from wheels for another platform or Python than the environment's, by their own tags. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from envmedic.model.facts import Distribution, Environment, Interpreter

_EVERY = "any"
_SYSTEM = re.compile(r"(?P<system>manylinux|musllinux|linux|macosx|win|android|ios|pyodide|emscripten)")
_MACHINE = re.compile(r"(?P<machine>x86_64|amd64|aarch64|arm64|i686|armv\dl|ppc64le|s390x|riscv64|universal2|win32)$")
_COMPILED = re.compile(r"cp(?P<series>\d{2,3})-(?P<abi>abi3|cp\d{2,3}t?)(?:m|mu|d)?-")


def foreign(environment: Environment) -> Iterator[tuple[Distribution, str]]:
    """Yield the distributions none of whose tags the environment's CPython takes, with what these are for.

    Those of conda are left out: it records a platform of its own.
    """
    python = environment.interpreter
    if python.implementation != "cpython" or python.platform_tag is None or not python.version:
        return
    for item in environment.distributions:
        if item.tags and item.owner != "conda" and not item.outside_prefix:
            reasons = [_reason(tag, python) for tag in item.tags]
            if all(reasons):
                yield item, " and ".join(dict.fromkeys(filter(None, reasons)))


def _reason(tag: str, python: Interpreter) -> str | None:
    """What a tag is for that the interpreter is not; None where it takes it, or where that is not known."""
    platform = tag.rpartition("-")[2]
    return _other_system(platform, python) or _other_python(tag, python)


def _other_system(platform: str, python: Interpreter) -> str | None:
    system, machine = _SYSTEM.match(platform), _MACHINE.search(platform)
    if platform == _EVERY or system is None:
        return None
    musl = (python.soabi or "").endswith("-musl")
    if system["system"] not in {"linux", "musllinux" if musl else "manylinux"}:
        return f"for {platform}"
    here = _MACHINE.search(python.platform_tag or "")
    return f"for {platform}" if machine and here and machine["machine"] != here["machine"] else None


def _other_python(tag: str, python: Interpreter) -> str | None:
    compiled = _COMPILED.match(tag)
    if compiled is None:
        return None
    major, minor = (int(part) for part in (python.version or "").split(".")[:2])
    for_minor = int(compiled["series"][1:])
    if compiled["abi"] == "abi3":
        fits = for_minor <= minor
    else:
        free = f"cpython-{major}{minor}t" in (python.soabi or "")
        fits = compiled["abi"] == f"cp{major}{minor}{'t' if free else ''}"
    made_for = f"cp{compiled['series']}" if compiled["abi"] == "abi3" else compiled["abi"]
    return None if fits else f"for {made_for}"
