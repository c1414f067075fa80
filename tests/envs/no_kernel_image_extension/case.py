"""Builds the broken environment of this case: a module compiled for another GPU than the node's. See README.md."""

from __future__ import annotations

import inspect
from pathlib import Path

from envmedic.model.facts import Toolkit
from tests.envs.no_kernel_image.case import CU128, GpuCase
from tests.envs.stale_extension.case import install_from
from tests.support import gpu_family
from tests.support.building import toolkit
from tests.support.gpu_family import host_file, torch_wheel
from tests.support.native_case import build_native
from tests.support.torch_modules import BACKEND, PACKAGE, build_tools, project

BUILDER = "supported_arches = ['7.5', '8.0', '8.6', '8.9', '9.0', '10.0', '12.0']\n"
OPERATOR = "int kernels(void); int box_area(int w, int h) { return kernels() ? w * h : 0; }\n"
COMPILE = '''

def write_gpu_code(file):
    """What nvcc does with the kernels: code for the capabilities that were asked for."""
    asked = os.environ.get("TORCH_CUDA_ARCH_LIST", "7.5").replace(" ", ";").split(";")
    sass = [item.replace("+PTX", "") for item in asked]
    ptx = [item.replace("+PTX", "") for item in asked if item.endswith("+PTX")]
    file.write_text(gpu_source(sass, ptx))


write_gpu_code(HERE / "kernels.c")
SOURCES = ["box.c", "kernels.c"]
'''
PROGRAM = "import box_ops\n\nprint('area:', box_ops.area(3, 4))\n"


def build(room: Path, *capabilities: str) -> GpuCase:
    """box-ops, compiled for capability 7.5, for a node with GPUs of these `capabilities` and a toolkit of torch's CUDA."""
    torch = torch_wheel(room / "wheels", CU128, labelled=False, more={"torch/utils/cpp_extension.py": BUILDER})
    native = build_native(room, [torch, *build_tools(room / "wheels")], ["torch"], PROGRAM)
    home = toolkit(room, CU128.cuda)
    found = Toolkit(path=str(home), version=CU128.cuda, nvcc=str(home / "bin" / "nvcc"), found_by="CUDA_HOME")
    source = project(room / "src" / "box-ops")
    (source / "box.c").write_text(OPERATOR, encoding="utf-8")
    (source / "kernels.cu").write_text("// compiled by the backend\n", encoding="utf-8")
    maker = "\n\n".join(
        inspect.getsource(item) for item in (gpu_family.entry, gpu_family.fat_binary, gpu_family.gpu_source)
    )
    constants = f"import struct\n\nPTX, SASS, MAGIC = {gpu_family.PTX}, {gpu_family.SASS}, {gpu_family.MAGIC}\n\n\n"
    backend = BACKEND.replace('"-l:libc10.so"', '"-l:libtorch_cuda.so", "-Wl,-rpath,$ORIGIN/../torch/lib"')
    text = f"from __future__ import annotations\n\n{backend}\n\n{constants}{maker}{COMPILE}"
    (source / "backend.py").write_text(text, encoding="utf-8")
    (source / "box_ops" / "__init__.py").write_text(
        PACKAGE.replace("torch.ops.load_library", "ctypes.CDLL").replace("import os\n", "import ctypes\nimport os\n"),
        encoding="utf-8",
    )
    install_from(native, source)
    return GpuCase(native, host_file(room, *capabilities, toolkits=(found,)), "")
