"""Made observations of JAX, CuPy and onnxruntime, as their wheels state them."""

from __future__ import annotations

from envmedic.model.consumers import Consumer, OpenedLibrary
from envmedic.model.facts import Distribution, Environment, Gpu, Host, Interpreter
from tests.diagnosis.helpers import distribution

JAX = distribution(
    "jax", "0.6.2", "jaxlib<=0.6.2,>=0.6.2",
    'jaxlib<=0.6.2,>=0.6.2; extra == "cuda12"', 'jax-cuda12-plugin[with-cuda]<=0.6.2,>=0.6.2; extra == "cuda12"',
)  # fmt: skip
CUDNN = 'nvidia-cudnn-cu12<10.0,>=9.8; extra == "with-cuda"'


def plugin(version: str = "0.6.2", cuda: str = "12") -> Distribution:
    """A CUDA plugin of JAX."""
    return distribution(f"jax-cuda{cuda}-plugin", version, f"jax-cuda{cuda}-pjrt=={version}", CUDNN)


def jax(*others: Distribution, core: str = "0.6.2", own: str = "0.6.2") -> tuple[Distribution, ...]:
    """The four parts of JAX, and more."""
    return (JAX, distribution("jaxlib", core), plugin(own), distribution("jax-cuda12-pjrt", own), *others)


def opened(soname: str, path: str | None = None, *, how: str = "opened", seen: bool = True) -> OpenedLibrary:
    """A library that is opened; found at `path`."""
    return OpenedLibrary(soname=soname, path=path, seen=seen, how=how)  # type: ignore[arg-type]


def consumer(
    name: str, version: str, build: str | None, *libraries: OpenedLibrary, cuda: str | None = "12"
) -> Consumer:
    """An installed consumer."""
    return Consumer(
        name=name, version=version, distributions=(f"{name} {version}",), build=build, cuda=cuda if build else None,
        libraries=libraries,
    )  # fmt: skip


def environment(installed: tuple[Distribution, ...], *consumers: Consumer) -> Environment:
    """An environment without torch."""
    return Environment(
        prefix="/env", real_prefix="/env", kind="venv",
        interpreter=Interpreter(path="/env/bin/python", starts=True, version="3.11.7"),
        distributions=installed, files=(), consumers=consumers,
    )  # fmt: skip


def host(driver: str | None = None, capability: str | None = None) -> Host:
    """A host with that driver, and perhaps a GPU."""
    gpus = (Gpu(index=0, name="GPU", compute_capability=capability),) if capability else ()
    return Host(driver_version=driver, gpus=gpus)
