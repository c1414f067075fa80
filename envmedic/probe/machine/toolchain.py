"""CUDA toolkits and host compilers."""

from __future__ import annotations

import json
import os
import platform
import re
import shlex
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal

from envmedic import shell
from envmedic.model.facts import Compiler, Toolkit
from envmedic.owner import owner
from envmedic.probe.readable import is_directory, is_file, names, read_text
from envmedic.proc import ask

TIMEOUT_S = 10.0
CompilerName = Literal["gcc", "g++", "clang", "clang++", "unknown"]
_RELEASE = re.compile(r"release (\d+\.\d+)")
_VERSION = re.compile(r"\b(\d+\.\d+(?:\.\d+)*)\b")
_DIRECTORY_VERSION = re.compile(r"cuda-(\d+\.\d+)$")
_HEADERS = ("cuda_runtime.h", "cublas_v2.h", "cusparse.h", "cusolverDn.h")
"""What torch's headers for extensions include (ATen/cuda/CUDAContextLight.h and CUDAContext.h)."""
_LINKED = ("lib64", "usr/lib64", "lib", "usr/lib", "usr/local/lib", "usr/local/lib64")
_LIBCUDA = "libcuda.so"
_SYSTEM = ("/usr/bin", "/bin")
"""Compilers there look for libraries in the system's folders, which `libcuda` lists."""
_VERSIONED = re.compile(r"(?:gcc|g\+\+|clang|clang\+\+)-(?P<version>\d+)")
_PROGRAMS = ("gcc", "g++", "clang", "clang++")
_KNOWN: dict[str, CompilerName] = {"gcc": "gcc", "g++": "g++", "clang": "clang", "clang++": "clang++"}


def toolkits(variables: Mapping[str, str], local: Path = Path("/usr/local")) -> tuple[Toolkit, ...]:
    """CUDA toolkits, those that builds would take first, each directory once."""
    found: dict[str, Toolkit] = {}
    for folder, found_by in _toolkit_folders(variables, local):
        real = os.path.realpath(folder)
        if real not in found and is_directory(Path(real)):
            found[real] = toolkit(folder, found_by)
    return tuple(found.values())


def _toolkit_folders(variables: Mapping[str, str], local: Path) -> Iterator[tuple[Path, str]]:
    for name in ("CUDA_HOME", "CUDA_PATH"):
        # one directory is right, but people write lists as for PATH; each part is reported
        for part in variables.get(name, "").split(":"):
            if part:
                yield Path(part), name
    nvcc = shutil.which("nvcc", path=variables.get("PATH", os.defpath))
    if nvcc is not None:
        yield _home_of(nvcc), "PATH"
    # torch's cpp_extension tries CUDA_HOME, CUDA_PATH, nvcc on PATH, then /usr/local/cuda: the same order here
    for name in names(local):
        if name == "cuda" or _DIRECTORY_VERSION.match(name):
            yield local / name, "/usr/local/cuda"


def _home_of(nvcc: str) -> Path:
    """The toolkit of an nvcc; one that is a script elsewhere (a distribution's wrapper) names the real one."""
    script = read_text(Path(nvcc), shell.LARGEST, follow=True) or ""
    target = re.search(r"exec\s+[\"']?(/\S*?/bin/nvcc)\b", script) if script.startswith("#!") else None
    return Path(os.path.realpath(target[1] if target else nvcc)).parent.parent


def toolkit(folder: Path, found_by: str, *, start: bool = True) -> Toolkit:
    """Describe the toolkit in `folder`, which may lack any of its parts; its nvcc tells its release if it may `start`."""
    nvcc = folder / "bin" / "nvcc"
    exists = os.access(nvcc, os.X_OK)
    # version.json first: a file is read faster than a program starts, and nvcc may belong to another user
    version = _stated_version(folder)
    if version is None and exists and start:
        version = nvcc_version(_output(str(nvcc), "--version"))
    return Toolkit(
        path=str(folder),
        version=version,
        nvcc=str(nvcc) if exists else None,
        found_by=found_by,
        missing_headers=_missing_headers(folder),
        stubs=_stubs(folder),
    )


def _missing_headers(folder: Path) -> tuple[str, ...]:
    targets = (folder / "targets" / name / "include" for name in names(folder / "targets"))
    present = {name for place in (folder / "include", *targets) for name in names(place)}
    return tuple(name for name in _HEADERS if name not in present)


def _stubs(folder: Path) -> str | None:
    targets = (folder / "targets" / name / "lib" for name in names(folder / "targets"))
    places = (place / "stubs" for place in (folder / "lib64", folder / "lib", *targets))
    return next((str(place) for place in places if is_file(place / "libcuda.so")), None)


def libcuda(root: Path = Path("/")) -> tuple[str, ...]:
    """Default directories of the system's linker that have a libcuda.so. `root` is / except in tests."""
    places = [root / name for name in _LINKED] + [root / "usr/lib" / f"{platform.machine()}-linux-gnu"]
    real = {os.path.realpath(place): place for place in places if is_file(place / "libcuda.so")}
    return tuple(str(place) for place in real.values())


def _stated_version(folder: Path) -> str | None:
    """What version.json (CUDA 11.1 and later) says of nvcc, or else of the toolkit."""
    try:
        stated: object = json.loads(read_text(folder / "version.json") or "null")
    except (ValueError, RecursionError):
        return None
    # after a partial upgrade the two differ, and extensions are compiled by nvcc
    for key in ("cuda_nvcc", "cuda"):
        part = stated.get(key) if isinstance(stated, dict) else None
        match = _VERSION.match(str(part.get("version"))) if isinstance(part, dict) else None
        if match is not None:
            return ".".join(match[1].split(".")[:2])
    return None


def nvcc_version(output: str) -> str | None:
    """``12.4`` from the output of ``nvcc --version``."""
    match = _RELEASE.search(output)
    return match[1] if match else None


def compilers(variables: Mapping[str, str]) -> tuple[Compiler, ...]:
    """Host compilers: those that CC and CXX name, then those on PATH."""
    path = variables.get("PATH", os.defpath)
    wanted = [(name, variables.get(name, "")) for name in ("CC", "CXX")]
    found = {item.path: item for item in named([*wanted, *(("PATH", program) for program in _PROGRAMS)], path)}
    for place, version in _versioned(path):
        name = compiler_name(place, "")
        found.setdefault(place, Compiler(path=place, name=name, version=version, found_by="PATH"))
    return tuple(found.values())


def named(commands: Iterable[tuple[str, str]], path: str) -> tuple[Compiler, ...]:
    """The compilers of `commands`, each with what names it, as a shell with this `path` finds them; each once."""
    found: dict[str, Compiler] = {}
    for found_by, command in commands:
        program = _first_word(command)
        place = shutil.which(program, path=path) if program else None
        if place is not None and place not in found:
            found[place] = _compiler(place, found_by)
    return tuple(found.values())


def _versioned(path: str) -> Iterator[tuple[str, str]]:
    """Compilers that carry their major version in their name, as distributions install several beside each other.

    A directory that PATH reaches by two ways, as /bin and /usr/bin, counts once.
    """
    folders: dict[str, str] = {}
    for folder in filter(None, path.split(os.pathsep)):
        folders.setdefault(os.path.realpath(folder), folder)
    for folder in folders.values():
        for name in names(Path(folder)):
            match = _VERSIONED.fullmatch(name)
            if match is not None:
                yield os.path.join(folder, name), match["version"]  # noqa: PTH118  # as which() writes it


def _first_word(command: str) -> str:
    """The program of ``ccache gcc -m64``-like values, ccache and its kind left out."""
    try:
        words = shlex.split(command)
    except ValueError:
        return ""
    return next((word for word in words if Path(word).name not in ("ccache", "sccache", "env")), "")


def _compiler(path: str, found_by: str) -> Compiler:
    # cc and c++ are links to one of several compilers, so the name alone does not identify them
    output = _output(path, "--version")
    return Compiler(
        path=path,
        name=compiler_name(path, output),
        version=compiler_version(output),
        found_by=found_by,
        libcuda=None if os.path.dirname(path) in _SYSTEM else _links_libcuda(path),  # noqa: PTH120  # as which() writes it
    )


def _links_libcuda(path: str) -> bool | None:
    """What the compiler answers when it is asked for the library: its path, or the bare name where there is none."""
    # a compiler of conda has its own sysroot and search path, which the system's directories do not describe
    answer = _output(path, f"-print-file-name={_LIBCUDA}").strip()
    return True if answer.startswith("/") else False if answer == _LIBCUDA else None


def compiler_name(path: str, output: str) -> CompilerName:
    """Which compiler it is; ``cc`` and its kind are told by their own words."""
    stem = re.sub(r"(-\d+(\.\d+)*)?$", "", Path(path).name)
    for name in ("clang++", "clang", "g++", "gcc"):
        if stem == name or stem.endswith("-" + name):
            return _KNOWN[name]
    if "clang" in output:
        return "clang"
    return "gcc" if "Free Software Foundation" in output else "unknown"


def compiler_version(output: str) -> str | None:
    """The last version on the first line: distributions put their own in front, in parentheses."""
    line = re.sub(r"\([^)]*\)", "", output.partition("\n")[0])
    match = _VERSION.search(line)
    return match[1] if match else None


def _output(program: str, *arguments: str) -> str:
    """Standard output of a short command in the C locale; empty where it cannot be started or fails."""
    try:
        user = owner(Path(program))  # root runs programs of another user as that user
        result = ask([program, *arguments], env={"LC_ALL": "C"}, timeout_s=TIMEOUT_S, user=user)
    except OSError:
        return ""
    return result.stdout if result.returncode == 0 else ""
