"""The machine of ``--host FILE``, where wheels for this one would not run."""

from __future__ import annotations

import os

from envmedic.model.facts import Host

_GLIBC = (17, 28, *range(31, 41))
"""Minor versions of glibc that uv has names of platforms for."""
_MACHINES = frozenset({"x86_64", "aarch64"})


def platform_of(host: Host) -> str | None:
    """Return uv's name of the platform of `host`, such as ``aarch64-manylinux_2_28``; None for a machine like this one."""
    if host.system != "linux" or host.machine not in _MACHINES or host.machine == os.uname().machine:
        return None
    major, _, minor = (host.glibc or "2.28").partition(".")
    there = int(minor) if major == "2" and minor.isdecimal() else 28
    return f"{host.machine}-manylinux_2_{max((known for known in _GLIBC if known <= there), default=17)}"


def note(host: Host) -> str:
    """Return what a plan for such a machine cannot say of an environment of this one."""
    here = os.uname().machine
    return (
        f"The wheels are those for {host.machine}. What stays in the environment is for {here} where it is compiled: on the other "
        f"machine, make the environment from a lock: envmedic lock --platform linux-{host.machine.replace('x86_64', '64')}"
    )
