"""Toolkits, compilers, system, variables and their redaction."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from envmedic import redact
from envmedic.probe.machine import host, toolchain


def make_program(path: Path, output: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\ncat <<'TEXT'\n{output}\nTEXT\n")
    path.chmod(0o755)
    return path


NVCC = "nvcc: NVIDIA (R) Cuda compiler driver\nCuda compilation tools, release 12.4, V12.4.131"


def test_toolkits_are_found_by_variable_path_and_place_each_once(tmp_path: Path) -> None:
    make_program(tmp_path / "a/bin/nvcc", NVCC)
    make_program(tmp_path / "local/cuda-11.8/bin/nvcc", NVCC.replace("12.4", "11.8"))
    (tmp_path / "local/cuda").symlink_to("cuda-11.8")
    (tmp_path / "local/cuda-12.6").mkdir()
    (tmp_path / "local/cuda-12.6/version.json").write_text('{"cuda": {"version": "12.6.3"}}')
    (tmp_path / "local/cudnn").mkdir()
    variables = {
        "CUDA_HOME": f"{tmp_path}/a:{tmp_path}/gone",
        "CUDA_PATH": str(tmp_path / "a"),
        "PATH": f"{tmp_path}/local/cuda/bin:/usr/bin:/bin",
    }
    found = [(item.path.replace(str(tmp_path), ""), item.version, item.found_by, bool(item.nvcc))
             for item in toolchain.toolkits(variables, tmp_path / "local")]  # fmt: skip
    assert found == [
        ("/a", "12.4", "CUDA_HOME", True),
        ("/local/cuda-11.8", "11.8", "PATH", True),
        ("/local/cuda-12.6", "12.6", "/usr/local/cuda", False),
    ]


def test_a_wrapper_script_leads_to_the_toolkit_that_it_starts(tmp_path: Path) -> None:
    real = make_program(tmp_path / "cuda-13.0/bin/nvcc", NVCC.replace("12.4", "13.0"))
    wrapper = tmp_path / "bin/nvcc"
    wrapper.parent.mkdir()
    wrapper.write_text(f'#!/bin/sh\nexec {real} "$@"\n')
    wrapper.chmod(0o755)
    found = toolchain.toolkits({"PATH": f"{wrapper.parent}:/usr/bin:/bin"}, tmp_path / "none")
    assert [(item.path, item.version) for item in found] == [(str(tmp_path / "cuda-13.0"), "13.0")]


def test_nvcc_that_fails_gives_a_toolkit_without_version(tmp_path: Path) -> None:
    nvcc = make_program(tmp_path / "a/bin/nvcc", "")
    nvcc.write_text("#!/bin/sh\nexit 3\n")
    (found,) = toolchain.toolkits({"CUDA_HOME": str(tmp_path / "a"), "PATH": ""}, tmp_path / "none")
    assert (found.version, found.nvcc) == (None, str(nvcc))


@pytest.mark.parametrize("text", ["{}", "[]", "not json", '{"cuda": 3}', '{"cuda": {"version": null}}'])
def test_version_file_without_a_version(tmp_path: Path, text: str) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/version.json").write_text(text)
    (found,) = toolchain.toolkits({"CUDA_HOME": str(tmp_path / "a"), "PATH": ""}, tmp_path / "none")
    assert found.version is None


def test_compilers_named_by_variables_come_first(tmp_path: Path) -> None:
    gnu = "(Ubuntu 13.2.0-4ubuntu3) 13.2.0\nCopyright (C) 2023 Free Software Foundation, Inc."
    make_program(tmp_path / "gcc", "gcc " + gnu)
    make_program(tmp_path / "x86_64-conda-linux-gnu-c++", "x86_64-conda-linux-gnu-c++ " + gnu)
    make_program(tmp_path / "clang-18", "Ubuntu clang version 18.1.3 (1ubuntu1)\nTarget: x86_64")
    variables = {"CC": "ccache clang-18 -m64", "CXX": "x86_64-conda-linux-gnu-c++", "PATH": f"{tmp_path}:/usr/bin:/bin"}
    found = [(item.name, item.version, item.found_by) for item in toolchain.compilers(variables)
             if item.path.startswith(str(tmp_path))]  # fmt: skip
    assert found == [("clang", "18.1.3", "CC"), ("gcc", "13.2.0", "CXX"), ("gcc", "13.2.0", "PATH")]


@pytest.mark.parametrize(
    ("answer", "links"), [("libcuda.so", False), ("/opt/root/lib/libcuda.so", True), ("clang: error", None)]
)
def test_a_compiler_elsewhere_is_asked_for_the_drivers_library(tmp_path: Path, answer: str, links: bool | None) -> None:  # noqa: FBT001  # a row of a table
    make_program(tmp_path / "bin" / "x-gcc", answer)
    found = {
        item.path: item.libcuda for item in toolchain.compilers({"CC": "x-gcc", "PATH": f"{tmp_path}/bin:/usr/bin"})
    }
    assert found.pop(f"{tmp_path}/bin/x-gcc") is links
    assert set(found.values()) <= {None}, "the system's are not asked"


def test_variables_that_name_no_compiler(tmp_path: Path) -> None:
    assert toolchain.compilers({"CC": "'unclosed", "CXX": "nonexistent", "PATH": str(tmp_path)}) == ()


def test_a_compiler_that_path_reaches_by_two_ways_is_one(tmp_path: Path) -> None:
    (tmp_path / "usr" / "bin").mkdir(parents=True)
    (tmp_path / "usr" / "bin" / "g++-12").touch(mode=0o755)
    (tmp_path / "bin").symlink_to("usr/bin")
    found = toolchain.compilers({"PATH": f"{tmp_path}/usr/bin:{tmp_path}/bin"})
    assert [item.path for item in found] == [f"{tmp_path}/usr/bin/g++-12"]


def test_relevant_variables_are_chosen_and_redacted() -> None:
    variables = {
        "CUDA_HOME": "/usr/local/cuda",
        "TORCH_CUDA_ARCH_LIST": "10.1",
        "UV_INDEX_PRIVATE_PASSWORD": "hunter2",
        "PIP_INDEX_URL": "https://me:pw@host/simple?token=abc",
        "HTTPS_PROXY": "http://u:p@proxy:3128",
        "HF_TOKEN": "hf_x",
        "EDITOR": "vi",
    }
    found = {item.name: item.value for item in host.relevant(variables)}
    assert found == {
        "CUDA_HOME": "/usr/local/cuda",
        "TORCH_CUDA_ARCH_LIST": "10.1",
        "UV_INDEX_PRIVATE_PASSWORD": "***",
        "PIP_INDEX_URL": "https://***@host/simple?token=***",
        "HTTPS_PROXY": "http://***@proxy:3128",
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://user@host/x", "https://***@host/x"),
        ("a https://u:p@h https://k:l@m/", "a https://***@h https://***@m/"),
        ("git+ssh://git@github.example/x.git@main", "git+ssh://***@github.example/x.git@main"),
        ("https://host/path@1.0", "https://host/path@1.0"),
        ("https://u:p@ss/word@host/", "https://***@ss/word@host/"),
        ("https://h/?X-Amz-Signature=abc&v=1", "https://h/?X-Amz-Signature=***&v=1"),
        ("/plain/path", "/plain/path"),
    ],
)
def test_credentials_of_urls_are_hidden(text: str, expected: str) -> None:
    assert redact.redact_url(text) == expected


def test_preloaded_libraries_that_lead_to_no_file(tmp_path: Path) -> None:
    (tmp_path / "libhere.so").touch()
    entries = [f"{tmp_path}/libhere.so", "libhere.so", "/gone/libiomp5.so", "libgone_of_nobody.so", "/opt/$LIB/libx.so"]
    given = {"LD_LIBRARY_PATH": str(tmp_path), "LD_PRELOAD": ":".join(entries)}
    assert host.lost_preloads(given) == ("/gone/libiomp5.so", "libgone_of_nobody.so")


def test_variables_of_caches_and_of_gloo_are_kept() -> None:
    given = {"TRITON_CACHE_DIR": "/a", "TORCHINDUCTOR_CACHE_DIR": "/b", "GLOO_SOCKET_IFNAME": "eth7", "TRIVIAL": "1"}
    assert {item.name for item in host.relevant(given)} == given.keys() - {"TRIVIAL"}


def test_container_technologies(tmp_path: Path) -> None:
    assert host.container(tmp_path, {}) is None
    (tmp_path / "proc/1").mkdir(parents=True)
    (tmp_path / "proc/1/cgroup").write_text("11:memory:/kubepods/burstable/pod1\n")
    assert host.container(tmp_path, {}) == "kubernetes"
    (tmp_path / "run").mkdir()
    (tmp_path / "run/.containerenv").write_text("")
    assert host.container(tmp_path, {}) == "podman"
    (tmp_path / ".dockerenv").write_text("")
    assert host.container(tmp_path, {}) == "docker"
    assert host.container(tmp_path, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}) == "kubernetes"
    assert host.container(tmp_path, {"SINGULARITY_NAME": "x.sif"}) == "apptainer"


def test_distribution_and_wsl() -> None:
    assert (
        host.distribution('NAME="X"\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n')
        == "Debian GNU/Linux 12 (bookworm)"
    )
    assert host.distribution("") is None
    assert host.is_wsl("5.15.90.1-microsoft-standard-WSL2")
    assert not host.is_wsl("6.18.0")


def test_this_machine_is_observed() -> None:
    found = host.observe_host({"PATH": os.environ.get("PATH", ""), "CUDA_VISIBLE_DEVICES": ""})
    assert found.kernel == os.uname().release
    assert found.visible_gpus() == ()
    assert found.driver_version is not None or found.nvml_error
    assert [item.name for item in found.variables] == ["CUDA_VISIBLE_DEVICES", "PATH"]


@pytest.mark.parametrize("content", ["", "no shebang line\n", "#!/nonexistent/interpreter\n", "\x7fELF damaged"])
def test_programs_that_cannot_be_started_are_told_without_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str
) -> None:
    for name in ("gcc", "clang", "nvidia-smi", "cuda/bin/nvcc"):
        make_program(tmp_path / name, "").write_text(content)
    monkeypatch.setenv("PATH", str(tmp_path))
    found = host.observe_host({"PATH": str(tmp_path), "CUDA_HOME": str(tmp_path / "cuda")})
    assert [(item.path, item.version) for item in found.compilers] == [
        (str(tmp_path / "gcc"), None),
        (str(tmp_path / "clang"), None),
    ]
    assert (found.toolkits[0].nvcc, found.toolkits[0].version) == (str(tmp_path / "cuda/bin/nvcc"), None)
