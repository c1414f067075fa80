"""A miniature torch that builds extensions by the rules of the real one, toolkits to build with, and shells.

Compilers, linkers and shells are the system's. ``nvcc`` is a script that says its release, since the real one takes
gigabytes: nothing here is compiled for a GPU.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.support.native import PLATFORM_TAGS, shared_library
from tests.support.native_case import SUMMARY, Done, NativeCase
from tests.support.wheels import Wheel, make_wheel

TORCH = "2.5.1"
C10 = "int c10_warn(void) { return 25; }"
BUILDER = '''\
"""A miniature of torch's builder for envmedic's tests: its rules and its messages, and gcc for the rest."""

import os
import shutil
import subprocess
import sysconfig

import torch

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def find_cuda_home():
    home = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH")
    nvcc = shutil.which("nvcc")
    return home or (nvcc and os.path.dirname(os.path.dirname(nvcc)))


def check_cuda_version():
    home = find_cuda_home()
    if not home:
        raise OSError("CUDA_HOME environment variable is not set. Please set it to your CUDA install root.")
    text = subprocess.check_output([os.path.join(home, "bin", "nvcc"), "--version"]).decode()
    found = text.split("release ")[1].split(",")[0]
    if found.split(".")[0] != torch.version.cuda.split(".")[0]:
        raise RuntimeError(
            "The detected CUDA version (%s) mismatches the version that was used to compile\\n"
            "PyTorch (%s). Please make sure to use the same CUDA versions." % (found, torch.version.cuda)
        )
    return found


def _get_cuda_arch_flags():
    supported_arches = ['7.0', '7.5', '8.0', '8.6', '8.7', '8.9', '9.0', '9.0a']
    arch_list = [entry for entry in os.environ.get("TORCH_CUDA_ARCH_LIST", "").replace(" ", ";").split(";")]
    if arch_list == [""]:
        arch_list = []  # no GPU is visible to a miniature
        arch_list[-1] += '+PTX'
    for arch in arch_list:
        if arch.replace("+PTX", "") not in supported_arches:
            raise ValueError("Unknown CUDA arch (%s) or GPU not supported" % arch)
    return arch_list


def load():
    if shutil.which("ninja") is None:
        raise RuntimeError("Ninja is required to load C++ extensions")
    return subprocess.check_output(["ninja", "--version"]).decode().strip()


def compile_module(source, target):
    """One C file, linked with torch's own library."""
    include = sysconfig.get_path("include")
    library = os.path.join(HERE, "lib")
    subprocess.check_call(
        ["gcc", "-shared", "-fPIC", "-I" + include, source, "-o", target, "-L" + library, "-l:libc10.so",
         "-Wl,-rpath,$ORIGIN/../torch/lib"]
    )
'''
NVCC = '#!/bin/sh\necho "nvcc: NVIDIA (R) Cuda compiler driver"\necho "Cuda compilation tools, release VERSION, VVERSION.131"\n'
HEADERS = ("cuda_runtime.h", "cublas_v2.h", "cusparse.h", "cusolverDn.h")
PROGRAMS = (
    "awk", "basename", "bash", "cat", "dirname", "env", "gcc", "ld", "as", "git", "grep", "sed", "sh", "tr", "uname",
)  # fmt: skip


def torch_wheel(directory: Path, *, version: str = TORCH, builder: str = BUILDER, c10: str = C10) -> Wheel:
    """torch with its builder and one library of its own."""
    files: dict[str, str | bytes] = {
        "torch/__init__.py": '"""A miniature for tests."""\n\nfrom torch import version\n\n__version__ = version.__version__\n',
        "torch/version.py": f'__version__ = "{version}+cu124"\ncuda = "12.4"\nhip = None\ngit_version = "miniature"\n',
        "torch/utils/__init__.py": "",
        "torch/utils/cpp_extension.py": builder,
        "torch/lib/libc10.so": shared_library(c10, name="libc10.so"),
    }
    return make_wheel(directory, "torch", version, files=files, tags=PLATFORM_TAGS, summary=SUMMARY)


def toolkit(root: Path, version: str, *, headers: tuple[str, ...] = HEADERS, stubs: bool = False) -> Path:
    """A CUDA toolkit's folders, with an nvcc that says its release; with `stubs`, a stand-in for the driver's library."""
    folder = root / f"cuda-{version}"
    (folder / "bin").mkdir(parents=True)
    (folder / "include").mkdir()
    nvcc = folder / "bin" / "nvcc"
    nvcc.write_text(NVCC.replace("VERSION", version), encoding="utf-8")
    nvcc.chmod(0o755)
    for name in headers:
        (folder / "include" / name).touch()
    if stubs:
        (folder / "lib64" / "stubs").mkdir(parents=True)
        library = shared_library("int cuInit(unsigned flags) { return 34; }", name="libcuda.so.1")
        (folder / "lib64" / "stubs" / "libcuda.so").write_bytes(library)
    return folder


def programs(root: Path, *, without: tuple[str, ...] = ()) -> Path:
    """A folder with links to the system's programs that builds use, so that PATH holds no others."""
    import shutil

    folder = root / "programs"
    folder.mkdir()
    for name in PROGRAMS:
        found = shutil.which(name)
        if found is not None and name not in without:
            (folder / name).symlink_to(found)
    return folder


def script(path: Path, text: str) -> Path:
    """An executable file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return path


def export(case: NativeCase, line: str) -> None:
    """Let the environment's activate script do one thing more, as people edit it in."""
    file = case.prefix / "bin" / "activate"
    file.write_text(f"{file.read_text(encoding='utf-8')}\n{line}\n", encoding="utf-8")


def activated(case: NativeCase, command: str, **more: str) -> Done:
    """Run `command` in a shell that has activated the environment."""
    text = f". {case.prefix}/bin/activate && {command}"
    env = {**case.variables(), **more}
    done = subprocess.run(
        ["/bin/bash", "-c", text], env=env, cwd=case.room, capture_output=True, text=True, check=False
    )
    return Done(done.returncode, done.stdout, done.stderr)


def failing(case: NativeCase, command: str = "python program.py", **more: str) -> Path:
    """What `command` prints while it fails, as a file."""
    done = activated(case, command, **more)
    assert done.code != 0, done.told()
    file = case.room / "error.log"
    file.write_text(done.out + done.err, encoding="utf-8")
    return file
