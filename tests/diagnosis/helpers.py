"""Observed environments, told in a few words."""

from __future__ import annotations

from envmedic.model.facts import (
    CompanionBuild,
    Distribution,
    Environment,
    Facts,
    Gpu,
    Host,
    ImportPath,
    Interpreter,
    Leftover,
    Library,
    Origin,
    TorchBuild,
    UnresolvedSymbol,
)

SITE = "lib/python3.11/site-packages"
HOST = Host(
    driver_version="580.95.05",
    driver_cuda="13.0",
    gpus=(Gpu(index=0, name="NVIDIA H200", compute_capability="9.0"),),
)


def distribution(name: str, version: str, *requires: str) -> Distribution:
    return Distribution(
        name=name,
        version=version,
        metadata_path=f"{SITE}/{name}-{version}.dist-info",
        site=SITE,
        owner="pip",
        origin=Origin(kind="index"),
        requires=requires,
    )


def library(
    package: str = "torchvision",
    file: str = "_C.so",
    *,
    unresolved: tuple[str, ...] = (),
    missing: tuple[str, ...] = (),
    error: str | None = None,
) -> Library:
    return Library(
        path=f"{SITE}/{package}/{file}",
        distribution=package,
        unresolved=tuple(UnresolvedSymbol(symbol=symbol) for symbol in unresolved),
        unresolved_count=len(unresolved),
        missing=missing,
        error=error,
    )


TORCH_LIBRARY = library("torch", "_C.cpython-311-x86_64-linux-gnu.so")


def environment(
    *,
    torch: str | None = "2.5.1+cu124",
    torch_variant: str | None = None,
    torchvision: str | None = "0.20.1+cu124",
    requires_torch: str | None = "torch==2.5.1",
    has_gpu_code: bool | None = True,
    libraries: tuple[Library, ...] = (TORCH_LIBRARY, library()),
    copies: int = 1,
    leftovers: tuple[Leftover, ...] = (),
    starts: bool = True,
    import_paths: tuple[ImportPath, ...] = (),
) -> Environment:
    """A coherent environment, but for what is said."""
    distributions: tuple[Distribution, ...] = (distribution("torch", torch),) if torch else ()
    companions: tuple[CompanionBuild, ...] = ()
    if torchvision:
        distributions += (distribution("torchvision", torchvision),) * copies
        label = torchvision.partition("+")[2] or None
        companions = (
            CompanionBuild(
                name="torchvision",
                version=torchvision,
                cuda=cuda(label),
                variant=label,
                has_gpu_code=has_gpu_code,
                requires_torch=requires_torch,
            ),
        )
    variant = torch_variant or (torch.partition("+")[2] if torch else "")
    return Environment(
        prefix="/env",
        real_prefix="/env",
        kind="venv",
        interpreter=Interpreter(
            path="/env/bin/python", starts=starts, version="3.11.7", error=None if starts else "gone"
        ),
        distributions=distributions,
        duplicates=("torchvision",) if copies > 1 else (),
        leftovers=leftovers,
        torch=TorchBuild(version=torch, cuda=cuda(variant), variant=variant) if torch else None,
        companions=companions,
        libraries=libraries,
        import_paths=import_paths,
    )


def cuda(variant: str | None) -> str | None:
    """``12.4`` for ``cu124``."""
    return f"{variant[2:-1]}.{variant[-1]}" if variant and variant.startswith("cu") else None


def facts(observed: Environment | None = None, host: Host = HOST) -> Facts:
    return Facts(host=host, environment=observed)
