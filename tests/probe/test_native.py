"""OpenMP runtimes are found by their files, with who brings them; nothing is opened."""

from __future__ import annotations

from pathlib import Path

from envmedic.probe.binaries import openmp
from envmedic.probe.environment import observe_environment
from tests.support.venvs import install, make_venv
from tests.support.wheels import make_wheel


def test_runtimes_of_wheels_and_of_the_prefix(tmp_path: Path) -> None:
    wheel = make_wheel(
        tmp_path / "wheels",
        "app",
        "1.0",
        files={
            "app/__init__.py": "",
            "app.libs/libgomp-a34b3233.so.1.0.0": b"",
            "app.libs/libomp-0123abcd.so": b"",
            "app/libgomping.so": b"",
            "app/notlibomp.txt": b"",
            "app-1.0.data/data/lib/libiomp5.so": b"",
        },
    )
    prefix = make_venv(tmp_path / "env")
    install(prefix, [wheel])
    (prefix / "lib" / "libomp.so").write_bytes(b"")
    (prefix / "lib" / "libomp.so.5").symlink_to("libomp.so")
    (prefix / "lib" / "libgomp.so.1").symlink_to("nowhere")
    found = {
        Path(item.path).name: (item.kind, item.distribution, item.same_as)
        for item in observe_environment(prefix).openmp
    }
    assert found == {
        "libgomp-a34b3233.so.1.0.0": ("libgomp", "app", None),
        "libomp-0123abcd.so": ("libomp", "app", None),
        "libiomp5.so": ("libiomp5", "app", None),
        "libomp.so": ("libomp", None, None),
        "libomp.so.5": ("libomp", None, "lib/libomp.so"),
    }


def test_conda_packages_of_mkl_and_openmp(tmp_path: Path) -> None:
    records = tmp_path / "conda-meta"
    records.mkdir()
    for name in (
        "mkl-2024.1.0-ha957f24_693",
        "_openmp_mutex-5.1-1_gnu",
        "numpy-1.26.4-py311h08b1b3b_0",
        "history",
        "odd",
    ):
        (records / f"{name}.json").write_text("{}")
    found = [(item.name, item.version, item.build) for item in openmp.packages(tmp_path)]
    assert found == [("_openmp_mutex", "5.1", "1_gnu"), ("mkl", "2024.1.0", "ha957f24_693")]
    assert openmp.packages(tmp_path / "elsewhere") == ()
