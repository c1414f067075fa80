"""Builds of the torch family from their files."""

from __future__ import annotations

from pathlib import Path

import pytest

from envmedic.model.facts import Library
from envmedic.probe import layout
from envmedic.probe.binaries import family_files, libraries, torch_family
from envmedic.probe.elf.loader import Search
from envmedic.probe.packages import distributions
from tests.probe.prefixes import add_distribution, build_library, make_prefix, site

_TORCH_VERSION = """
from typing import Optional

__all__ = ['__version__', 'debug', 'cuda', 'git_version', 'hip']
__version__ = '2.5.1+cu124'
debug = False
cuda: Optional[str] = '12.4'
git_version = 'a8d6afb'
hip: Optional[str] = None
"""


def test_assignments_are_read_as_text() -> None:
    stated = torch_family.parse_version_file(_TORCH_VERSION)
    assert stated == {"__version__": "2.5.1+cu124", "cuda": "12.4", "git_version": "a8d6afb", "hip": None}


def test_code_in_a_version_file_is_never_run(tmp_path: Path) -> None:
    text = f"__version__ = '1'\nopen({str(tmp_path / 'trace')!r}, 'w')\nif True:\n    cuda = '9'\n"
    assert torch_family.parse_version_file(text) == {"__version__": "1"}
    assert not (tmp_path / "trace").exists()


@pytest.mark.parametrize(
    ("version", "variant"),
    [
        ("2.5.1+cu124", "cu124"),
        ("0.18.1+cpu", "cpu"),
        ("2.6.0+rocm6.2.4", "rocm6.2.4"),
        ("2.11.0+cu130", "cu130"),
        ("1.13.1+cu117.with.pypi.cudnn", "cu117"),
        ("2.6.0a0+ecf3bae40a.nv25.01", None),
        ("2.5.1", None),
        ("2.5.1+gitcu12", None),
    ],
)
def test_variant_of_a_local_label(version: str, variant: str | None) -> None:
    assert torch_family.variant_of_version(version) == variant


@pytest.mark.parametrize(
    ("cuda", "variant"), [("12.4", "cu124"), ("9.2", "cu92"), ("13.0", "cu130"), ("11.8", "cu118")]
)
def test_variant_and_cuda_are_inverse(cuda: str, variant: str) -> None:
    assert torch_family.variant_of_cuda(cuda) == variant
    assert torch_family.cuda_of_variant(variant) == cuda


@pytest.mark.parametrize("variant", [None, "cpu", "rocm6.2", "cu"])
def test_other_variants_have_no_cuda(variant: str | None) -> None:
    assert torch_family.cuda_of_variant(variant) is None


@pytest.mark.parametrize(
    ("requires", "expected"),
    [
        (("numpy", "torch==2.3.1", "pillow"), "torch==2.3.1"),
        (("torch (>=2.0) ; extra == 'x'", "torchdata"), None),
        (("torch >=2.14 ; python_version > '3.8'",), "torch>=2.14"),
        ((), None),
    ],
)
def test_requirement_on_torch(requires: tuple[str, ...], expected: str | None) -> None:
    assert torch_family.requires_torch(requires) == expected


def test_cuda_major_of_the_linked_runtime() -> None:
    for soname, expected in (
        ("libcudart.so.12", "12"),
        ("libcudart.7ec1eba6.so.12", "12"),
        ("libcudart-9335f6a2.so.11.0", "11"),
        ("libcudnn.so.9", None),
    ):
        assert (
            torch_family.linked_cuda([Library(path="x", distribution=None, needed=("libc.so.6", soname))]) == expected
        )


def package(prefix: Path, name: str) -> family_files.Package:
    sites = layout.site_packages(layout.read_layout(prefix), "3.11")
    installed = [item.distribution for folder in sites for item in distributions.scan(folder, prefix).installed]
    found = family_files.find(name, sites, installed)
    assert found is not None
    return found


def test_torch_build_from_its_version_file(tmp_path: Path) -> None:
    prefix = make_prefix(tmp_path / "env")
    add_distribution(site(prefix), "torch", "2.5.1", files={"torch/version.py": _TORCH_VERSION})
    gpu = Library(path="x", distribution="torch", sass=("8.0", "9.0"), ptx=("9.0",))
    build = torch_family.torch_build(package(prefix, "torch"), [gpu])
    assert build is not None
    assert (build.version, build.cuda, build.variant, build.git_version) == ("2.5.1+cu124", "12.4", "cu124", "a8d6afb")
    assert (build.arch_list, build.ptx_list) == (("8.0", "9.0"), ("9.0",))


@pytest.mark.parametrize(
    ("text", "variant"),
    [
        ("__version__ = '2.5.1'\ncuda: Optional[str] = '12.4'\n", "cu124"),
        ("__version__ = '2.5.1'\ncuda = None\nhip = '6.2.41133-dd7f95766'\n", "rocm6.2"),
        ("__version__ = '2.5.1'\ncuda = None\nhip = None\n", "cpu"),
        ("__version__ = '2.5.1'\n", None),
    ],
)
def test_variant_without_a_local_label(tmp_path: Path, text: str, variant: str | None) -> None:
    prefix = make_prefix(tmp_path / "env")
    add_distribution(site(prefix), "torch", "2.5.1", files={"torch/version.py": text})
    build = torch_family.torch_build(package(prefix, "torch"), [])
    assert build is not None
    assert build.variant == variant


def test_package_without_version_and_distribution_is_no_build(tmp_path: Path) -> None:
    prefix = make_prefix(tmp_path / "env")
    (site(prefix) / "torch").mkdir()
    assert torch_family.torch_build(package(prefix, "torch"), []) is None


def test_companion_that_was_built_without_cuda(tmp_path: Path) -> None:
    prefix = make_prefix(tmp_path / "env")
    add_distribution(
        site(prefix), "torchvision", "0.20.1", files={"torchvision/version.py": "__version__ = '0.20.1a0+3ac97aa'\n"},
        metadata="Requires-Dist: torch\n",
    )  # fmt: skip
    build_library(site(prefix) / "torchvision" / "_C.so", "int x;")
    found = package(prefix, "torchvision")
    read = libraries.observe(prefix, tmp_path / "none", {"torchvision": found}, Search(defaults=()))
    build = torch_family.companion_build("torchvision", found, read)
    assert build is not None
    assert (build.version, build.variant, build.cuda, build.has_gpu_code) == ("0.20.1a0+3ac97aa", "cpu", None, False)
    assert build.requires_torch == "torch"


def test_companion_without_operator_library_cannot_tell(tmp_path: Path) -> None:
    prefix = make_prefix(tmp_path / "env")
    add_distribution(site(prefix), "torchaudio", "2.5.1+cu124", files={"torchaudio/__init__.py": ""})
    build = torch_family.companion_build("torchaudio", package(prefix, "torchaudio"), [])
    assert build is not None
    assert (build.variant, build.cuda, build.has_gpu_code) == ("cu124", "12.4", None)


def test_package_of_an_editable_install_lies_in_its_source(tmp_path: Path) -> None:
    prefix, source = make_prefix(tmp_path / "env"), tmp_path / "my source"
    (source / "torchvision").mkdir(parents=True)
    direct = f'{{"url": "{source.as_uri()}", "dir_info": {{"editable": true}}}}'
    add_distribution(site(prefix), "torchvision", "0.20.1a0", extra={"direct_url.json": direct})
    assert package(prefix, "torchvision").folder == source / "torchvision"


def test_optional_extensions_of_the_companions_are_left_out(tmp_path: Path) -> None:
    prefix = make_prefix(tmp_path / "env")
    vision = ("_C.so", "_C_stable.abi3.so", "image.so", "video_reader.so", "_C.py")
    audio = ("libtorchaudio.so", "_torchaudio.abi3.so", "libtorchaudio_sox.so", "_torchaudio_sox.so",
             "_torchaudio_ffmpeg6.so", "libtorio_ffmpeg6.so")  # fmt: skip
    add_distribution(site(prefix), "torchvision", "1", files={f"torchvision/{name}": "" for name in vision})
    add_distribution(site(prefix), "torchaudio", "1", files={f"torchaudio/lib/{name}": "" for name in audio})
    found = family_files.operator_libraries(package(prefix, "torchvision"))
    assert [path.name for path in found] == ["_C.so", "_C_stable.abi3.so", "image.so"]
    found = family_files.operator_libraries(package(prefix, "torchaudio"))
    assert [path.name for path in found] == ["_torchaudio.abi3.so", "libtorchaudio.so"]


def make_torch(prefix: Path, *exports: str) -> None:
    """A torch whose extension needs a library that exports `exports`."""
    add_distribution(site(prefix), "torch", "2.5.1", files={"torch/version.py": _TORCH_VERSION})
    folder = site(prefix) / "torch"
    source = "".join(f"int {name}(void) {{ return 0; }}\n" for name in exports)
    needed = build_library(folder / "lib" / "libtorch.so", source, "-nostdlib", "-Wl,-soname,libtorch.so")
    linked = ("-nostdlib", "-Wl,--no-as-needed", str(needed), "-Wl,-rpath,$ORIGIN/lib")
    build_library(folder / "_C.cpython-311-x86_64-linux-gnu.so", "int PyInit__C(void) { return 0; }", *linked)


def make_torchvision(prefix: Path, symbol: str) -> None:
    add_distribution(site(prefix), "torchvision", "0.18.1", files={"torchvision/__init__.py": ""})
    source = f"extern int {symbol}(void);\nint nms(void) {{ return {symbol}(); }}\n"
    torch = site(prefix) / "torch" / "lib" / "libtorch.so"
    build_library(site(prefix) / "torchvision" / "_C.so", source, "-nostdlib", "-Wl,--no-as-needed", str(torch))


@pytest.mark.parametrize(("symbol", "unresolved"), [("at_new", 0), ("at_old", 1)])
def test_extension_is_checked_against_the_torch_beside_it(tmp_path: Path, symbol: str, unresolved: int) -> None:
    prefix = make_prefix(tmp_path / "env")
    make_torch(prefix, "at_new")
    make_torchvision(prefix, symbol)
    packages = {name: package(prefix, name) for name in ("torch", "torchvision")}
    read = libraries.observe(prefix, tmp_path / "none", packages, Search(defaults=()))
    extension = next(item for item in read if item.path.endswith("torchvision/_C.so"))
    assert extension.distribution == "torchvision"
    assert extension.missing == ()
    assert extension.unresolved_count == unresolved
    assert [item.symbol for item in extension.unresolved] == ["at_old"] * unresolved


def test_library_of_which_torch_opens_a_copy_itself_is_found(tmp_path: Path) -> None:
    prefix = make_prefix(tmp_path / "env")
    make_torch(prefix, "at_new")
    wheel = build_library(
        site(prefix) / "nvidia" / "cublas" / "lib" / "libcublas.so.12", "int cublasCreate(void) { return 0; }",
        "-nostdlib", "-Wl,-soname,libcublas.so.12",
    )  # fmt: skip
    global_deps = site(prefix) / "torch" / "lib" / "libtorch_global_deps.so"
    build_library(global_deps, "int x;", "-nostdlib", "-Wl,--no-as-needed", str(wheel))
    make_torchvision(prefix, "cublasCreate")
    packages = {name: package(prefix, name) for name in ("torch", "torchvision")}
    read = libraries.observe(prefix, tmp_path / "none", packages, Search(defaults=()))
    assert next(item for item in read if item.path.endswith("torchvision/_C.so")).unresolved_count == 0


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"text"])
def test_unreadable_library_is_a_fact(tmp_path: Path, content: bytes) -> None:
    prefix = make_prefix(tmp_path / "env")
    add_distribution(site(prefix), "torchvision", "0.18.1", files={"torchvision/__init__.py": ""})
    (site(prefix) / "torchvision" / "_C.so").write_bytes(content)
    (site(prefix) / "torchvision" / "image.so").symlink_to("image.so")
    read = libraries.observe(prefix, tmp_path / "none", {"torchvision": package(prefix, "torchvision")}, Search())
    assert [bool(item.error) for item in read] == [True, True]
    build = torch_family.companion_build("torchvision", package(prefix, "torchvision"), read)
    assert build is not None
    assert build.has_gpu_code is None
