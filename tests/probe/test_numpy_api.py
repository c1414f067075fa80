"""Which modules know NumPy 1 only: by the texts that compilers put into them."""

from __future__ import annotations

from pathlib import Path

import pytest

from envmedic.probe.binaries import bundled, numpy_api
from envmedic.probe.packages.distributions import scan
from tests.support.native import shared_library
from tests.support.venvs import install, make_venv, site_packages
from tests.support.wheels import Wheel, make_wheel

ONE = "numpy.core._multiarray_umath"
TWO = "numpy._core._multiarray_umath"
CHECK = "module compiled against ABI version 0x%x but this version of numpy is 0x%x"


def module(name: str, *texts: str) -> bytes:
    """A library with constants as the sources of a module have them."""
    constants = "".join(f'const char *text{index} = "{text}";\n' for index, text in enumerate(texts))
    return shared_library(constants, name=name)


def wheel(directory: Path, name: str, *texts: str) -> Wheel:
    files: dict[str, str | bytes] = {f"{name}/__init__.py": "", f"{name}/_module.so": module("_module.so", *texts)}
    return make_wheel(directory, name, "1.0", files=files)


@pytest.mark.parametrize(("numpy", "expected"), [("2.2.6", {"old"}), ("1.26.4", None), (None, None)])
def test_only_what_asks_for_numpy_one_alone_is_named(
    tmp_path: Path, numpy: str | None, expected: set[str] | None
) -> None:
    prefix = make_venv(tmp_path / "env")
    wheels = [
        wheel(tmp_path, "old", "_ARRAY_API", ONE, CHECK),
        wheel(tmp_path, "new", "_ARRAY_API", ONE, TWO, CHECK),
        wheel(tmp_path, "bound", "_ARRAY_API", ONE),  # by pybind11's header
        wheel(tmp_path, "oxide", "_ARRAY_API", ONE, CHECK, "RUST_BACKTRACE"),
        wheel(tmp_path, "other", "numpy.core is a word"),
        wheel(tmp_path, "torch", "_ARRAY_API", ONE, CHECK),
    ]
    if numpy is not None:
        wheels.append(make_wheel(tmp_path, "numpy", numpy))
    install(prefix, wheels)
    found = numpy_api.observe([scan(site_packages(prefix), prefix)], prefix)
    assert (None if found is None else {item.distribution for item in found}) == expected


def test_a_module_that_is_gone_or_no_library_says_nothing(tmp_path: Path) -> None:
    prefix = make_venv(tmp_path / "env")
    install(prefix, [wheel(tmp_path, "old", "_ARRAY_API", ONE, CHECK), make_wheel(tmp_path, "numpy", "2.2.6")])
    file = site_packages(prefix) / "old" / "_module.so"
    file.unlink()
    assert numpy_api.observe([scan(site_packages(prefix), prefix)], prefix) == ()
    file.write_bytes(b"_ARRAY_API numpy.core. module compiled against A")
    assert numpy_api.observe([scan(site_packages(prefix), prefix)], prefix) == ()


def test_bitsandbytes_tells_its_cuda_releases_by_its_files(tmp_path: Path) -> None:
    prefix = make_venv(tmp_path / "env")
    scans = [scan(site_packages(prefix), prefix)]
    assert bundled.bitsandbytes_cuda(scans) is None
    names = ("libbitsandbytes_cuda118.so", "libbitsandbytes_cuda124.so", "libbitsandbytes_cuda117_nocublaslt.so")
    files: dict[str, str | bytes] = {f"bitsandbytes/{name}": b"" for name in (*names, "libbitsandbytes_cpu.so")}
    install(prefix, [make_wheel(tmp_path, "bitsandbytes", "0.45.0", files=files)])
    assert bundled.bitsandbytes_cuda([scan(site_packages(prefix), prefix)]) == ("11.8", "12.4")
