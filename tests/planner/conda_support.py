"""Conda prefixes as values, for tests of the planner."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from envmedic.model.conda import CondaArtifact, CondaEnvironment, CondaOverlay, CondaPackage
from envmedic.model.facts import Distribution, Environment, Interpreter, TorchBuild
from tests.planner.support import SITE, dist

ROOT = "https://conda.example"


def package(
    name: str,
    version: str,
    build: str = "0",
    *depends: str,
    channel: str = "main",
    brings: tuple[str, ...] = (),
    requested: bool = False,
) -> CondaPackage:
    return CondaPackage(
        name=name,
        version=version,
        build=build,
        channel=f"{ROOT}/{channel}",
        subdir="linux-64",
        filename=f"{name}-{version}-{build}.conda",
        url=f"{ROOT}/{channel}/linux-64/{name}-{version}-{build}.conda",
        sha256="c" * 64,
        size_bytes=1000,
        depends=depends,
        requested=(name,) if requested else (),
        distributions=brings,
        record=f"conda-meta/{name}-{version}-{build}.json",
    )


def old_family(torch: str = "2.3.1", torchvision: str = "0.18.1", *, cuda: str | None = "12.1") -> list[CondaPackage]:
    """What the channel ``pytorch`` installs."""
    if cuda is None:
        tag, short, chooser = (
            "py3.11_cpu_0",
            "py311_cpu",
            package("cpuonly", "2.0", "0", "pytorch-mutex 1.0 cpu", channel="pytorch"),
        )
        mutex = package("pytorch-mutex", "1.0", "cpu", channel="pytorch")
        libraries: list[CondaPackage] = []
    else:
        tag, short = f"py3.11_cuda{cuda}_cudnn8.9.2_0", f"py311_cu{cuda.replace('.', '')}"
        chooser = package(
            "pytorch-cuda", cuda, "h7e8668a_5", f"cuda-cudart >={cuda}", f"libcublas >={cuda}", channel="pytorch"
        )
        mutex = package("pytorch-mutex", "1.0", "cuda", channel="pytorch")
        libraries = [
            package("cuda-cudart", f"{cuda}.105", channel="nvidia"),
            package("libcublas", f"{cuda}.0.26", channel="nvidia"),
        ]
    needs: tuple[str, ...] = ("python >=3.11,<3.12.0a0", "mkl >=2018", "sympy", f"pytorch-mutex 1.0 {mutex.build}")
    needs += (f"pytorch-cuda {cuda}.*",) if cuda else ()
    return [
        package("pytorch", torch, tag, *needs, channel="pytorch", brings=("torch",), requested=True),
        package("torchvision", torchvision, short, f"pytorch {torch}", "numpy", channel="pytorch", brings=("torchvision",)),
        chooser, mutex, *libraries,
    ]  # fmt: skip


def base(channel: str = "main") -> list[CondaPackage]:
    """Python, and what torch needs."""
    return [
        package("python", "3.11.9", "h955ad1f_0", channel=channel, requested=True),
        package("mkl", "2024.0.0", "ha957f24_49657", channel=channel),
        package("numpy", "2.1.3", "py311_0", "mkl >=2024", channel=channel, brings=("numpy",)),
        package("sympy", "1.13.3", "py_0", channel=channel, brings=("sympy",)),
        package("scipy", "1.14.0", "py311_0", "numpy >=1.23,<3", channel=channel, brings=("scipy",)),
    ]


def forge_family(
    torch: str = "2.6.0", torchvision: str = "0.21.0", build: str = "cuda126_mkl_py311_h0_300"
) -> list[CondaPackage]:
    """What conda-forge installs."""
    kind = "gpu" if build.startswith("cuda") else "cpu"
    return [
        package("pytorch", torch, build, f"libtorch {torch} {build}", "sympy", channel="conda-forge", brings=("torch",)),
        package("libtorch", torch, build, channel="conda-forge"),
        package(f"pytorch-{kind}", torch, build, f"pytorch {torch} {build}", channel="conda-forge", requested=True),
        package("torchvision", torchvision, f"{build[:7]}py311_0", f"pytorch {torch}.*", channel="conda-forge", brings=("torchvision",)),
    ]  # fmt: skip


def of(packages: Sequence[CondaPackage]) -> list[Distribution]:
    """The distributions that packages bring."""
    return [dist(name, item.version, owner="conda") for item in packages for name in item.distributions]


def prefix(
    packages: Sequence[CondaPackage],
    distributions: Sequence[Distribution] | None = None,
    *,
    variant: str | None = "cu121",
    overlaid: Sequence[CondaOverlay] = (),
    pinned: tuple[str, ...] = (),
    damaged: tuple[str, ...] = (),
) -> Environment:
    """A conda prefix with these packages, and on the disk these distributions: by default those that they bring."""
    found = tuple(of(packages) if distributions is None else distributions)
    names = [item.name for item in found]
    torch = next((item for item in found if item.name == "torch"), None)
    cuda = f"{variant[2:-1]}.{variant[-1]}" if variant is not None and variant.startswith("cu") else None
    return Environment(
        prefix="/home/me/env",
        real_prefix="/data/env",
        kind="conda",
        interpreter=Interpreter(path="/home/me/env/bin/python", starts=True, version="3.11.9"),
        distributions=found,
        duplicates=tuple(sorted({name for name in names if names.count(name) > 1})),
        torch=TorchBuild(version=torch.version, cuda=cuda, variant=variant) if torch else None,
        digest="digest-1",
        conda=CondaEnvironment(
            packages=tuple(packages), overlaid=tuple(overlaid), pinned=pinned, damaged=damaged, history="present"
        ),
    )


def over(package: str, item: Distribution, *, same: bool = True, left: int = 0) -> CondaOverlay:
    """A wheel that lies over a conda package."""
    return CondaOverlay(
        package=package,
        distribution=item.name,
        version=item.version,
        metadata_path=item.metadata_path,
        same=same,
        shared=10,
        left=left,
    )


def covered(environment: Environment, *wheels: Distribution, mixed: bool = False) -> Environment:
    """`environment` after ``pip install`` of `wheels`: they took the place of conda's copies, but for the records."""
    names = {item.name for item in wheels}
    assert environment.conda is not None
    packages = {name: item.name for item in environment.conda.packages for name in item.distributions}
    kept = [item for item in environment.distributions if item.name not in names]
    overlaid = tuple(over(packages[item.name], item, left=int(mixed)) for item in wheels if item.name in packages)
    torch = next((item for item in wheels if item.name == "torch"), None)
    return msgspec.structs.replace(
        environment,
        distributions=(*kept, *wheels),
        conda=msgspec.structs.replace(environment.conda, overlaid=overlaid),
        torch=TorchBuild(version=torch.version, cuda="12.4", variant="cu124") if torch else environment.torch,
    )


def pip(name: str, version: str, *requires: str) -> Distribution:
    """A distribution that pip installed."""
    return dist(name, version, *requires, owner="pip")


def artifact(
    name: str, version: str, build: str = "0", *, channel: str = "pytorch", brings: tuple[str, ...] = ()
) -> CondaArtifact:
    """A package as a solver answers it."""
    filename = f"{name}-{version}-{build}.conda"
    return CondaArtifact(
        name=name,
        version=version,
        build=build,
        channel=f"{ROOT}/{channel}",
        subdir="linux-64",
        filename=filename,
        url=f"{ROOT}/{channel}/linux-64/{filename}",
        sha256="d" * 64,
        size_bytes=2000,
        distributions=brings,
        metadata={"depends": ["python >=3.11"] if brings else []},
    )


__all__ = ["SITE"]
