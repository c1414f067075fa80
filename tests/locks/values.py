"""Locks as values, for tests of the formats."""

from __future__ import annotations

import msgspec

from envmedic.model.lock import Lock, LockedPackage

DIGEST = "a" * 64
COMMIT = "0123456789abcdef0123456789abcdef01234567"
CHANNEL = "https://conda.example/forge"
FILES = "https://files.example"


def wheel(name: str, version: str = "1.0", **more: object) -> LockedPackage:
    """A wheel from the default index."""
    filename = f"{name.replace(chr(45), chr(95))}-{version}-py3-none-any.whl"
    plain = LockedPackage(
        manager="pip", name=name, version=version, kind="wheel", url=f"{FILES}/{filename}", filename=filename,
        sha256=DIGEST, hash_source="index",
    )  # fmt: skip
    return msgspec.structs.replace(plain, **more)


def conda(name: str, version: str = "1.0", *, build: str = "0", requires: tuple[str, ...] = ()) -> LockedPackage:
    """A conda package with both hashes."""
    filename = f"{name}-{version}-{build}.conda"
    return LockedPackage(
        manager="conda", name=name, version=version, kind="conda", url=f"{CHANNEL}/linux-64/{filename}",
        filename=filename, sha256=DIGEST, md5="b" * 32, requires=requires, build=build, channel=CHANNEL,
        subdir="linux-64", hash_source="conda record",
    )  # fmt: skip


def lock(*packages: LockedPackage, **more: object) -> Lock:
    """A lock of them, made on Linux with Python 3.11.7 and CUDA 12.4."""
    plain = Lock(
        envmedic="0.1.0", created="2026-01-02T03:04:05Z", platform="linux-64", python="3.11.7", packages=packages,
        channels=(CHANNEL,) if any(item.manager == "conda" for item in packages) else (), cuda="12.4", name="train",
    )  # fmt: skip
    return msgspec.structs.replace(plain, **more)


def mixed() -> Lock:
    """conda packages with the cycle that conda makes of python and pip, and wheels on top."""
    return lock(
        conda("pip", requires=("python >=3.9",)),
        conda("python", "3.11.7", requires=("pip", "__glibc >=2.17,<3.0.a0", "openssl >=3", "openssl <4")),
        wheel("torch", "2.5.1+cu124", requires=("numpy", "sympy==1.13.1; python_version >= '3.9'", "x; extra == 'y'")),
    )
