"""Environments, playbooks and wheels as values, for tests of the planner."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from envmedic.model.events import Emit
from envmedic.model.facts import (
    CompanionBuild,
    Distribution,
    Environment,
    Facts,
    Gpu,
    Host,
    Interpreter,
    Leftover,
    Library,
    Origin,
    TorchBuild,
)
from envmedic.model.findings import Finding
from envmedic.model.plan import Artifact, Install, Purge, Rebuild
from envmedic.model.playbook import LoadedPlaybook, Playbook, PlaybookStep, PurgeStep, TorchFamilyStep
from envmedic.model.ports import Resolution, ResolveRequest

SITE = "lib/python3.11/site-packages"
TRITON = 'triton==3.1.0; platform_system == "Linux" and platform_machine == "x86_64" and python_version < "3.13"'
TORCH = ("filelock", "sympy==1.13.1", "nvidia-cublas-cu12==12.4.5.8; platform_system == 'Linux'", TRITON)
NMS_STEPS: tuple[PlaybookStep, ...] = (PurgeStep(distributions=("torchvision",)), TorchFamilyStep())
NOW = "2026-01-02T03:04:05Z"


def dist(
    name: str,
    version: str,
    *requires: str,
    owner: str = "uv",
    imports: tuple[str, ...] | None = None,
    has_record: bool = True,
    site: str = SITE,
    size: int = 1000,
    outside: bool = False,
) -> Distribution:
    return Distribution(
        name=name,
        version=version,
        metadata_path=f"{site}/{name.replace('-', '_')}-{version}.dist-info",
        site=site,
        owner=owner,  # type: ignore[arg-type]
        origin=Origin(kind="index"),
        requires=requires,
        import_names=imports if imports is not None else (name.replace("-", "_"),),
        has_record=has_record,
        size_bytes=size,
        outside_prefix=outside,
    )


def usual(torchvision: str = "0.18.1", requires: str = "torch==2.3.1", torch: str = "2.5.1") -> list[Distribution]:
    """torch 2.5.1 of the default index with a torchvision of another release, and what torch needs."""
    return [
        dist("torch", torch, *TORCH, imports=("functorch", "torch", "torchgen"), size=1_500_000),
        dist("torchvision", torchvision, "numpy", requires, "pillow!=8.3.*,>=5.3.0", size=9000),
        dist("triton", "3.1.0", "filelock", imports=("triton", "triton._C")),
        dist("nvidia-cublas-cu12", "12.4.5.8", imports=("nvidia.cublas",)),
        dist("numpy", "2.2.0"),
        dist("pillow", "11.0.0", imports=("PIL",)),
        dist("filelock", "3.16.0"),
        dist("sympy", "1.13.1"),
    ]


def environment(
    distributions: Sequence[Distribution] | None = None,
    *,
    variant: str = "cu124",
    leftovers: tuple[Leftover, ...] = (),
    libraries: tuple[Library, ...] = (),
    companions: tuple[CompanionBuild, ...] = (),
    python: str = "3.11.9",
) -> Environment:
    found = tuple(usual() if distributions is None else distributions)
    names = [item.name for item in found]
    torch = next((item for item in found if item.name == "torch"), None)
    cuda = f"{variant[2:-1]}.{variant[-1]}" if variant.startswith("cu") else None
    return Environment(
        prefix="/home/me/env",
        real_prefix="/data/env",
        kind="venv",
        interpreter=Interpreter(path="/home/me/env/bin/python", starts=True, version=python),
        distributions=found,
        duplicates=tuple(sorted({name for name in names if names.count(name) > 1})),
        leftovers=leftovers,
        libraries=libraries,
        companions=companions,
        torch=TorchBuild(version=torch.version, cuda=cuda, variant=variant) if torch else None,
        digest="digest-1",
    )


def facts(
    env: Environment | None = None, *, driver: str | None = "560.35.05", gpus: tuple[str, ...] = ("8.6",)
) -> Facts:
    cards = tuple(Gpu(index=i, name="GPU", compute_capability=item) for i, item in enumerate(gpus))
    return Facts(host=Host(driver_version=driver, gpus=cards, glibc="2.39"), environment=env or environment())


def playbook(
    *steps: PlaybookStep, checks: tuple[str, ...] = ("torchvision-dispatch", "torchvision-nms"), **more: object
) -> LoadedPlaybook:
    made = Playbook(
        id="nms-cuda",
        fault="torchvision-ops",
        title="title",
        explain="explain",
        fix_kind="reinstall-matching-wheel",
        steps=steps or NMS_STEPS,
        checks=checks,
        **more,  # type: ignore[arg-type]
    )
    return LoadedPlaybook(playbook=made, path="nms-cuda.yaml", sha256="5" * 64, origin="shipped")


def finding(**groups: str) -> Finding:
    return Finding(
        fault="torchvision-ops",
        playbook="nms-cuda",
        signature="s",
        confidence=0.9,
        confirmed=True,
        summary="summary",
        fix_kind="reinstall-matching-wheel",
        groups=groups,
    )


def wheel(name: str, version: str, *requires: str, size: int | None = 5000) -> Artifact:
    filename = f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
    return Artifact(
        name=name,
        version=version,
        filename=filename,
        url=f"file:///wheels/{filename}",
        sha256="a" * 64,
        size_bytes=size,
        local_path=f"/cache/{filename}",
        requires=requires,
    )


def torchvision(version: str = "0.20.1", requires: str = "torch==2.5.1") -> Artifact:
    return wheel("torchvision", version, requires, "numpy", "pillow!=8.3.*,>=5.3.0")


class Spelling:
    """An installer that only spells its commands: planning must need nothing else."""

    def resolve(self, request: ResolveRequest, environment: Environment, emit: Emit) -> Resolution:
        raise AssertionError(f"planning resolves nothing: {request} {environment} {emit}")

    def fetch(self, artifacts: Sequence[Artifact], *, offline: bool, emit: Emit) -> None:
        raise AssertionError(f"planning fetches nothing: {artifacts} {offline} {emit}")

    def check_command(self, python: str) -> tuple[str, ...]:
        return ("pip", "check", python)

    def commands(self, step: Purge | Install, python: str) -> tuple[tuple[str, ...], ...]:
        if isinstance(step, Purge):
            names = tuple(item.name for item in step.distributions)
            return ((str(Path(python)), "uninstall", *names),) if names else ()
        return ((str(Path(python)), "install", *(item.filename for item in step.artifacts)),)

    def build_command(self, step: Rebuild, python: str) -> tuple[str, ...]:
        return (str(Path(python)), "build", step.distribution.name)
