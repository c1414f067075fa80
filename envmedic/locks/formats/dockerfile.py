"""A Dockerfile that makes the environment again, on an image that fits its CUDA. One file: the lock is inside it.

Images: https://hub.docker.com/r/nvidia/cuda (variants ``runtime`` and ``devel``; ``devel`` has nvcc). Every release of
CUDA has a tag ``x.y.0``; later patch releases are named here where they are known. No digest is written: a digest that
nobody has pulled would be an invention.
Here-documents need BuildKit (https://docs.docker.com/reference/dockerfile/#here-documents).
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from envmedic.locks import seal
from envmedic.locks.completeness import complete
from envmedic.locks.formats import requirements
from envmedic.locks.lock_format import LockFormat, is_yaml
from envmedic.model.lock import Lock, LockedPackage

SYSTEM: Final = "ubuntu22.04"
"""Of the image: its glibc (2.35) runs every manylinux wheel up to manylinux_2_35."""
PATCHES: Final = {
    "11.7": "11.7.1", "11.8": "11.8.0", "12.1": "12.1.1", "12.2": "12.2.2", "12.3": "12.3.2", "12.4": "12.4.1",
    "12.5": "12.5.1", "12.6": "12.6.3", "12.8": "12.8.1", "12.9": "12.9.1", "13.0": "13.0.1",
}  # fmt: skip
"""Newest known patch release of which nvidia/cuda has images for `SYSTEM`; as of 2025-10."""
PLAIN_IMAGE: Final = "ubuntu:22.04"
CONDA_IMAGE: Final = "condaforge/miniforge3:24.11.3-0"
"""Makes the conda part and is left behind; https://hub.docker.com/r/condaforge/miniforge3."""
PREFIX: Final = "/opt/env"


def text(lock: Lock) -> str:
    """The file. What it cannot hold is named in comments."""
    packages = complete(lock, FORMAT)
    conda = [item for item in packages if item.manager == "conda"]
    pip = [item for item in packages if item.manager == "pip"]
    head = ["# syntax=docker/dockerfile:1", "# What is installed, exactly; made by `envmedic lock`."]
    head += [f"# {key}: {value}" for key, value in seal.facts(lock).items()]
    head += [f"# not in it: {item.name} {item.version}: {item.reason}" for item in lock.incomplete]
    stages = _conda_stages(lock, conda) if conda else _python_stage(lock)
    own_pip = any(item.name == "pip" for item in conda)
    return "\n".join([*head, *stages, *_pip_part(pip, by_uv=not conda, own_pip=own_pip), *_end()]) + "\n"


def image(lock: Lock) -> str:
    """The image that the environment runs on: of its CUDA, with the compiler of it where something is compiled."""
    if lock.cuda is None:
        return PLAIN_IMAGE
    release = ".".join(lock.cuda.split(".")[:2])
    # only devel images have nvcc, and they are several GB larger
    return f"nvidia/cuda:{PATCHES.get(release, f'{release}.0')}-{'devel' if lock.builds else 'runtime'}-{SYSTEM}"


def _conda_stages(lock: Lock, conda: list[LockedPackage]) -> list[str]:
    """The conda packages by their URLs, in a stage of their own; then the final image with what it made."""
    # an explicit file needs no solver, and conda checks the MD5 after the # of each URL
    urls = [f"{item.url}#{item.md5}" for item in sorted(conda, key=_base_first)]
    return [
        f"FROM {CONDA_IMAGE} AS conda",
        "COPY <<'EOF' /tmp/explicit.txt",
        "@EXPLICIT",
        *urls,
        "EOF",
        f"RUN conda create --yes --quiet --copy --prefix {PREFIX} --file /tmp/explicit.txt",
        "",
        f"FROM {image(lock)}",
        f"COPY --from=conda {PREFIX} {PREFIX}",
    ]


def _base_first(item: LockedPackage) -> tuple[bool, str]:
    """Sort key: Python first, which noarch packages need for byte-compiling."""
    return item.name != "python", item.name


def _python_stage(lock: Lock) -> list[str]:
    """A Python of the same version by uv, which the image's own pip installs."""
    tools = "python3-pip git build-essential" if lock.builds else "python3-pip"
    return [
        f"FROM {image(lock)}",
        "RUN apt-get update \\",
        f"    && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends {tools} ca-certificates \\",
        "    && rm -rf /var/lib/apt/lists/* \\",
        "    && python3 -m pip install --no-cache-dir uv",
        "ENV UV_PYTHON_INSTALL_DIR=/opt/python",
        f"RUN uv venv --python {lock.python} {PREFIX}",
    ]


def _pip_part(pip: list[LockedPackage], *, by_uv: bool, own_pip: bool) -> list[str]:
    """The wheels, with their hashes: by uv, or in a conda prefix by its own pip or the one that Python carries."""
    if not pip:
        return []
    install = (
        f"uv pip install --no-cache --python {PREFIX}/bin/python --no-deps --require-hashes"
        if by_uv
        else f"{PREFIX}/bin/python -m pip install --no-cache-dir --no-deps --require-hashes"
    )
    return [
        "COPY <<'EOF' /tmp/requirements.txt",
        *map(requirements.entry, pip),
        "EOF",
        # a conda Python without the pip package still contains ensurepip
        *([] if by_uv or own_pip else [f"RUN {PREFIX}/bin/python -m ensurepip"]),
        f"RUN {install} -r /tmp/requirements.txt",
    ]


def _end() -> list[str]:
    return [f'ENV PATH="{PREFIX}/bin:$PATH"', 'CMD ["python"]']


def _is_dockerfile(path: Path, content: str) -> bool:
    named = path.name.endswith("Dockerfile")
    return not is_yaml(path) and path.suffix.lower() != ".toml" and (named or "\nFROM " in f"\n{content}")


FORMAT: Final = LockFormat(
    name="dockerfile",
    filename="Dockerfile",
    about="builds an image from the lock",
    holds="the lock, and an image of NVIDIA's that fits torch's CUDA",
    read_by="`docker build` (BuildKit)",
    holds_conda=True,
    needs_conda=False,
    holds_hashes=True,
    needs_url=False,
    needs_pep440=False,
    holds_repositories=False,
    holds_subdirectories=False,
    holds_directories=False,
    holds_platforms=False,
    noun="a Dockerfile",
    recognises=_is_dockerfile,
    write=text,
    read=None,
    unreadable="which says how to make an environment, not what is in it",
)
