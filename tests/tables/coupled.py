"""What releases of distributions bound to torch need of it: from metadata, and from the libraries of their wheels."""

from __future__ import annotations

import io
import re
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from envmedic.installers.index import pages
from envmedic.installers.index.http import IndexSession
from envmedic.installers.wheels import wheel_files
from envmedic.installers.wheels.remote_metadata import local_file
from envmedic.installers.wheels.torch_wheel import RemoteParts
from envmedic.model.answers.family import Offered
from envmedic.model.base import Model
from envmedic.probe.elf.dynamic import Elf, ElfError

PROJECTS: Mapping[str, int] = {
    "xformers": 45, "flash-attn": 12, "bitsandbytes": 24, "torchao": 24, "torchcodec": 26, "vllm": 36, "sgl-kernel": 8,
    "sglang-kernel": 16, "sglang": 24, "flashinfer-python": 24,
    "deepspeed": 12, "gsplat": 12, "mmcv": 6, "pytorch3d": 6,
    "causal-conv1d": 6, "mamba-ssm": 6, "torch-scatter": 3,
}  # fmt: skip
"""The projects, with how many of their releases are kept, the newest ones. Others are not on the default index."""
NAMES = frozenset({*PROJECTS, "torch", "torchvision", "torchaudio", "triton", "flashinfer-cubin"})
"""Distributions whose requirements on each other are kept."""
_LARGEST_MEMBER = 12 << 20
"""Packed bytes of a library that is read; larger ones are left out."""
_LARGEST_WHEEL = 24 << 20
"""Packed bytes that are read of all libraries of a wheel."""
_TAIL = 256 << 10
"""Bytes of the first request: the directory of a wheel and its metadata, which lie at its end."""
_LIBRARY = re.compile(r"\.so(\.\d+)*$")
_OF_TORCH = re.compile(rb"_ZNK?(?:2at|3c10|5torch)|THP")
_SHIM = re.compile(rb"aoti_torch_|torch_")
_BUNDLED = re.compile(r"libbitsandbytes_cuda(\d+)(\d)\.so")
_RUNTIME = re.compile(r"libcudart\.so\.(\d+)")


class Coupled(Model, frozen=True, kw_only=True, omit_defaults=True):
    """One release."""

    project: str
    version: str
    uploaded: str | None = None
    """Day of the first upload (ISO 8601, UTC)."""
    requires_python: str | None = None
    wheels: tuple[str, ...] = ()
    """The last three parts of the names of its wheels for Linux or for any system; empty for a source archive alone."""
    wheel: str | None = None
    """The wheel that was read."""
    sha256: str | None = None
    requires: tuple[str, ...] = ()
    """Its requirements on torch and what is bound to torch."""
    interface: str | None = None
    """``torch`` for libraries that use torch's C++ interface, ``stable`` for its stable one alone, ``none``; None where
    that was not read, or not all of it."""
    cuda: tuple[str, ...] = ()
    """The CUDA releases or major releases whose runtime the libraries load."""

    @property
    def files(self) -> tuple[Offered, ...]:
        """The wheels as an index offers them, without address and size."""
        name = self.project.replace("-", "_")
        return tuple(
            Offered(filename=f"{name}-{self.version}-{tags}.whl", url="", requires_python=self.requires_python)
            for tags in self.wheels
        )


def renewed(known: Sequence[Coupled], session: IndexSession, index: str) -> Iterator[tuple[Coupled, ...]]:
    """Yield the rows with one more release read each time. Raises `Spent` and `NetworkError`; what was yielded holds."""
    rows = {(row.project, row.version): row for row in known}
    for project, count in PROJECTS.items():
        offered = _newest(pages.project_files(session, index, project), count)
        kept = {(project, version) for version in offered}
        rows = {key: row for key, row in rows.items() if key[0] != project or key in kept}
        for version, files in offered.items():
            old = rows.get((project, version))
            file = _representative(files)
            row = _listed(project, version, files)
            if old is not None and (file is None or old.sha256 == file.sha256):
                told = {name: getattr(old, name) for name in ("wheel", "sha256", "requires", "interface", "cuda")}
                rows[project, version] = msgspec.structs.replace(row, **told)
                continue
            rows[project, version] = row if file is None else _read(row, file, session)
            yield _sorted(rows.values())
    yield _sorted(rows.values())


def _sorted(rows: Iterable[Coupled]) -> tuple[Coupled, ...]:
    return tuple(sorted(rows, key=lambda row: (row.project, Version(row.version))))


def _newest(files: Iterable[Offered], count: int) -> dict[str, list[Offered]]:
    found: dict[Version, list[Offered]] = {}
    for file in files:
        version = _version(file.filename)
        if version is not None and not version.is_prerelease and not file.yanked:
            found.setdefault(version, []).append(file)
    newest = sorted(found, reverse=True)[:count]
    return {str(version): found[version] for version in newest}


def _version(filename: str) -> Version | None:
    if filename.endswith(".whl"):
        text = filename.split("-")[1]
    elif filename.endswith((".tar.gz", ".zip")):
        text = filename.removesuffix(".zip").removesuffix(".tar.gz").rpartition("-")[2]
    else:
        return None
    try:
        return Version(text)
    except InvalidVersion:
        return None


def _tags(file: Offered) -> str:
    return "-".join(file.filename.removesuffix(".whl").rsplit("-", 3)[-3:])


def _for_linux(file: Offered) -> bool:
    return file.is_wheel and any(word in file.filename.rpartition("-")[2] for word in ("linux", "any.whl"))


def _listed(project: str, version: str, files: Sequence[Offered]) -> Coupled:
    wheels = sorted(_tags(file) for file in files if _for_linux(file))
    return Coupled(
        project=project,
        version=version,
        uploaded=min((file.uploaded for file in files if file.uploaded), default=None),
        requires_python=files[0].requires_python,
        wheels=tuple(wheels),
    )


def _representative(files: Iterable[Offered]) -> Offered | None:
    """Return the wheel that is read: for Linux x86_64 where there is one, of the newest Python."""
    wheels = [file for file in files if _for_linux(file)]
    return max(wheels, key=lambda file: ("x86_64" in file.filename, file.filename), default=None)


def _read(row: Coupled, file: Offered, session: IndexSession) -> Coupled:
    path = local_file(file.url)
    try:
        if path is not None:
            with path.open("rb") as local, zipfile.ZipFile(local) as archive:
                return _told(row, file, archive, None)
        size = file.size_bytes or int(session.request("HEAD", file.url).headers["Content-Length"])
        parts = RemoteParts(file.url, size, session, tail=_TAIL)
        with io.BufferedReader(parts, 1 << 16) as remote, zipfile.ZipFile(remote) as archive:
            return _told(row, file, archive, parts)
    except (ValueError, KeyError, OSError, zipfile.BadZipFile) as error:
        raise wheel_files.broken_wheel(file.filename, str(error)) from error


def _told(row: Coupled, file: Offered, archive: zipfile.ZipFile, parts: RemoteParts | None) -> Coupled:
    with wheel_files.unpacking():
        (metadata,) = (name for name in archive.namelist() if wheel_files.is_metadata(name))
        texts = wheel_files.requirements(wheel_files.member(archive, metadata).decode("utf-8", "replace"))
        requires = tuple(sorted({text for text in texts if _counts(text)}))
        found = msgspec.structs.replace(row, wheel=file.filename, sha256=file.sha256, requires=requires)
        # a release that goes with one torch alone needs no look into its libraries
        if any(re.match(r"torch ?\(?==", text) for text in requires) or file.filename.endswith("-any.whl"):
            return found
        interface, cuda = _libraries(archive, parts)
    return msgspec.structs.replace(found, interface=interface, cuda=cuda)


def _counts(text: str) -> bool:
    try:
        found = Requirement(text)
    except InvalidRequirement:
        return False
    return canonicalize_name(found.name) in NAMES and "extra" not in str(found.marker or "")


def _libraries(archive: zipfile.ZipFile, parts: RemoteParts | None) -> tuple[str | None, tuple[str, ...]]:
    """Return the interface of torch that the libraries of a wheel use, and the CUDA runtimes that they load."""
    found: set[str] = set()
    libraries = [item for item in archive.infolist() if _LIBRARY.search(item.filename)]
    # those that a wheel brings along do not know torch
    own = [item for item in libraries if ".libs/" not in item.filename]
    # bitsandbytes loads its libraries by ctypes, and torch not at all
    cuda = {f"{one[1]}.{one[2]}" for item in own if (one := _BUNDLED.search(item.filename))}
    left = _LARGEST_WHEEL
    for item in sorted(own if not cuda else (), key=lambda item: item.compress_size):
        left -= item.compress_size
        if item.compress_size > _LARGEST_MEMBER or left < 0:
            return ("torch" if "torch" in found else None), _ordered(cuda)
        if parts is not None:
            parts.ahead(item.header_offset, item.header_offset + item.compress_size + 512)
        interface, runtimes = _elf(archive.read(item))
        found.add(interface)
        cuda |= runtimes
        if interface == "torch" and cuda:
            break
    return next((kind for kind in ("torch", "stable") if kind in found), "none"), _ordered(cuda)


def _ordered(cuda: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(cuda, key=lambda text: [int(number) for number in text.split(".")]))


def _elf(content: bytes) -> tuple[str, set[str]]:
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        try:
            library = Elf(Path(file.name))
        except ElfError:
            return "none", set()
        try:
            undefined = library.undefined()
            runtimes = {one[1] for name in library.needed if (one := _RUNTIME.match(name))}
        finally:
            library.close()
    if any(_OF_TORCH.match(name) for name in undefined):
        return "torch", runtimes
    return ("stable" if any(_SHIM.match(name) for name in undefined) else "none"), runtimes
