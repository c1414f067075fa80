"""Spellings of messages by other releases, systems and languages, and texts that only look like a fault."""

from __future__ import annotations

import pytest

from envmedic.diagnosis.candidates import CERTAIN_ENOUGH
from tests.playbook.helpers import diagnosed

SPELLINGS = r"""
nvidia-wheel-conflict | the import ends with libtorch_cuda.so undefined symbol ncclCommGrow
nvidia-wheel-conflict | undefined symbol 'cublasLtMatmulAlgoInit'
nvidia-wheel-conflict | see /search?q=libtorch_cuda.so:%20undefined%20symbol:%20ncclCommShrink
nvidia-wheel-conflict | libcusolver.so.11: version libcublas.so.12 not defined in file libcublas.so.12 with link time reference
cudnn-mismatch | version libcudnn_cnn_infer.so.8 not defined in file libcudnn_cnn_infer.so.8
companion-version | TypeError: argument of type 'bool' is not iterable, at if "const" in schema: TypeError: argument of type 'bool' is not iterable
companion-version | File "/x/lib/python3.11/site-packages/gradio_client/utils.py", line 950, in _json_schema_to_python_type
nvrtc-arch | (EngineCore pid=6) triton.runtime.errors.PTXASError: PTXAS error: Internal Triton PTX codegen error
gpu-host-fault | Failed to infer device type
cudnn-mismatch | undefined symbol cudnnGetVersion_v8
mkl-openmp | it cannot allocate memory for the first library loaded
native-crash | a segmentation fault if timm is imported before torch
driver-too-old | main.cpp 77 the provided PTX was complied with an unsupported toolchain
missing-cuda-library | Require cuDNN 9.* and CUDA 12.*, and the latest MSVC runtime.
extension-undefined-symbol | OSError: [WinError 127] The specified procedure could not be found. Error loading "D:\x\ops\_ops_cuda.pyd" or one of its dependencies
extension-undefined-symbol | Procedure ?fold@TensorImpl@c10@@UEBAXXZ not found in DLL: D:\x\ops\_C.pyd.
extension-undefined-symbol | ImportError: DLL load failed while importing ops_cuda: Не найдена указанная процедура.
extension-undefined-symbol | ImportError: DLL load failed while importing _C: Das angegebene Modul wurde nicht gefunden.
extension-undefined-symbol | ImportError: DLL load failed while importing _ext: 找不到指定的模組。
extension-undefined-symbol | RuntimeError: Detected that PyTorch and torch_cluster were compiled with different CUDA versions. PyTorch has CUDA version 12.4 and torch_cluster has CUDA version 12.1.
extension-undefined-symbol | ModuleNotFoundError: No module named 'mmcv._ext'
extension-undefined-symbol | ModuleNotFoundError: No module named 'amp_C'
extension-undefined-symbol | ModuleNotFoundError: No module named 'selective_scan_cuda_core'
extension-undefined-symbol | ImportError: cannot import name '_C' from partially initialized module 'pytorch3d' (most likely due to a circular import)
extension-undefined-symbol | NameError: name '_C' is not defined
extension-undefined-symbol | the error is name 'ink_ext' is not defined
extension-undefined-symbol | RuntimeError: apex.optimizers.FusedLAMB requires cuda extensions
libstdcxx | OSError: [WinError 126] The specified module could not be found. Error loading "D:\x\lib\site-packages\torch\lib\shm.dll" or one of its dependencies.
mkl-openmp | OSError: [WinError 126] 找不到指定的模块。 Error loading "D:\x\lib\site-packages\torch\lib\fbgemm.dll" or one of its dependencies.
duplicate-install | OSError: [WinError 127] 找不到指定的程序。 Error loading "D:\x\lib\site-packages\torch\lib\c10.dll" or one of its dependencies.
duplicate-install | Could not find the bitsandbytes CUDA binary at PosixPath('/data/x/bitsandbytes/bitsandbytes/libbitsandbytes_cuda121.so')
companion-version | Could not find the bitsandbytes CUDA binary at PosixPath('/data/bitsandbytes/env/lib/python3.11/site-packages/bitsandbytes/libbitsandbytes_cuda121.so')
duplicate-install | AttributeError: module 'torch._C' has no attribute '_TensorBase'
duplicate-install | AttributeError: module 'cv2.dnn' has no attribute 'DictValue'
duplicate-install | ImportError: ERROR: recursion is detected during loading of "cv2" binary extensions. Check OpenCV installation.
cpu-only-torch | AttributeError: module 'torch._C' has no attribute '_cuda_setDevice'
no-kernel-image | nvidia rtx pro 6000 with cuda capability sm_120 is not compatible with the current pytorch installation
no-kernel-image | RuntimeError: HIP error: invalid device function
no-kernel-image | FATAL: kernel `fmha_cutlassB_bf16` is for sm80-sm100, but was built for sm70
nvrtc-arch | Command '['/x/triton/backends/nvidia/bin/ptxas', '-v', '--gpu-name=sm_103', '/tmp/a.ptx']' returned non-zero exit status 255.
gpu-host-fault | torch.AcceleratorError: CUDA error: CUDA-capable device(s) is/are busy or unavailable
gpu-host-fault | error running prestart hook #0: exit status 1, stdout: , stderr: nvidia-container-runtime-hook
companion-version | ModuleNotFoundError: No module named 'torch.nn.attention.flex_attention'
companion-version | ModuleNotFoundError: No module named 'torch.distributed.device_mesh'
companion-version | ImportError: cannot import name 'is_compile_supported' from 'torch.compiler'
companion-version | ImportError: cannot import name 'comm_reduce' from 'torch.cuda.comm'
companion-version | ImportError: cannot import name 'load_state_dict_from_url' from 'torchvision.models.utils'
companion-version | ModuleNotFoundError: No module named 'torchvision.models.utils'
companion-version | ImportError: urllib3 v2 only supports OpenSSL 1.1.1+, currently the 'ssl' module is compiled with 'OpenSSL 1.0.2g'
torchvision-ops | RuntimeError: No such operator image::decode_png
torchvision-ops | AttributeError: '_OpNamespace' 'image' object has no attribute 'decode_webp'
extension-build-toolchain | unable to execute '/usr/local/cuda-12/bin/nvcc': No such file or directory
extension-build-toolchain | CMake Error: CMAKE_CUDA_COMPILER not set, after EnableLanguage
extension-build-toolchain | /x/include/python3.8/Python.h:44:10: fatal error: crypt.h: No such file or directory
extension-build-toolchain | AssertionError: Unable to pre-compile sparse_attn
extension-build-toolchain | kernel.cu(31): error: identifier "cudaGraphExecUpdateResultInfo" is undefined
cuda-toolkit-mismatch | Installed CUDA version 12.2 does not match the version torch was compiled with 11.8
unsatisfiable | Requested textract==1.6.5 from file:///x/textract-1.6.5.tar.gz has invalid metadata: .* suffix can only be used with `==` or `!=` operators
missing-cuda-library | ImportError: libcudnn_adv.so.9: cannot open shared object file: No such file or directory
half-installed | ImportError: libpython3.8.so.1.0: cannot open shared object file: No such file or directory
driver-too-old | [W] [TRT] CUDA initialization failure with error: 35. Please check your CUDA installation
driver-too-old | Error: unsupported CUDA version: driver 10.2 < image 11.4
gpu-host-fault | [TRT] Cuda initialization failure with error 100. Please check cuda installation
gpu-host-fault | WARNING: Could not find any nv files on this host!
extension-undefined-symbol | ImportError: cannot import name '_C'
extension-undefined-symbol | pytorch3d._C             failed to import
half-installed | OSError: dlopen(/x/lib/libink.dylib, 0x000A): tried: '/x/lib/libink.dylib' (mach-o file, but is an incompatible architecture (have (arm64), need (x86_64h)))
half-installed | OSError: /x/ink/libink.so: wrong ELF class: ELFCLASS32
half-installed | ImportError: DLL load failed while importing _ink: %1 is not a valid Win32 application.
companion-version | ImportError: 无法导入 torch.ink.Pen
companion-version | RuntimeError: torchaudio 与 torch 的版本不匹配
numpy-abi | ImportError: NumPy 的版本不兼容
extension-undefined-symbol | 报错: 未定义符号: _ZN3c105ErrorC2ENS_14SourceLocationESs
libstdcxx | ImportError: dlopen(/x/ink/_C.cpython-38-darwin.so, 2): Library not loaded: @rpath/libc++.1.dylib
companion-version | ImportError: dlopen(/x/ink/_C.so, 0x0002): Library not loaded: /usr/local/opt/webp/lib/libwebp.6.dylib
companion-version | ImportError: No xformers
companion-version | File "/x/transformers/models/auto/configuration_auto.py", line 7, in __getitem__ raise KeyError(key) KeyError: 'ink2'
companion-version | Exception: data did not match any variant of untagged enum PyPreTokenizerTypeWrapper
companion-version | ValueError: Tokenizer class Ink2Tokenizer does not exist or is not currently imported.
companion-version | TypeError: DPOTrainer.__init__() got an unexpected keyword argument 'beta'
companion-version | TypeError: InkForCausalLM.__init__() got an unexpected keyword argument 'load_in_8bit'
companion-version | AttributeError: 'InkRotaryEmbedding' object has no attribute 'rope_type'
companion-version | AttributeError: module 'torch.backends' has no attribute 'mps'
companion-version | AttributeError: module 'apex' has no attribute 'amp'
companion-version | TypeError: ForwardRef._evaluate() missing 1 required positional argument: 'type_params'
companion-version | ImportError: cannot import name 'is_torch_version'
extension-undefined-symbol | ModuleNotFoundError: No module named 'exllamav2_kernels'
extension-build-toolchain | subprocess.CalledProcessError: Command '['ninja', '-v']' returned non-zero exit status 1.
extension-build-toolchain | subprocess.CalledProcessError: Command '['/usr/bin/gcc-11', '/tmp/a/main.c', '-O3', '-lcuda']' returned non-zero exit status 1.
extension-build-toolchain | ImportError: /x/torch_extensions/py39_cu118/ink/ink.so: cannot open shared object file: No such file or directory
extension-build-toolchain | KeyError: 'CUDA_HOME'
extension-build-toolchain | with CUDA 12.1, g++ versions later than 12 are not supported
unsatisfiable | Examining conflict for ink python boxes:  42%|####      | 11/26 [01:31<02:35,  7.80s/it]
duplicate-install | File "/x/packaging/version.py", line 200, in __init__ match = self._regex.search(version) TypeError: expected string or bytes-like object
companion-version | AssertionError: peft>=0.10.0 requirement not satisfied
companion-version | ImportError: cannot import name 'sageattn_qk_int8' from 'sageattention' (/x/lib/python3.12/site-packages/sageattention/__init__.py)
companion-version | ImportError: cannot import name 'tile' from 'einx' (D:\x\Lib\site-packages\einx\__init__.py)
companion-version | [libprotobuf FATAL google/protobuf/descriptor.cc:1379] CHECK failed: GeneratedDatabase()->Add(encoded_file_descriptor, size):
extension-undefined-symbol | AttributeError: '_OpNamespace' '_C_cache_ops' object has no attribute 'reshape_and_cache_flash'
extension-undefined-symbol | RuntimeError: operator _C::gelu_tanh_and_mul does not exist
extension-undefined-symbol | NotImplementedError: Could not run 'torch_sparse::spmm_sum' with arguments from the 'CUDA' backend.
gpu-host-fault | RuntimeError: driver_api INTERNAL ASSERT FAILED at "/pytorch/c10/cuda/driver_api.cpp":27, please report a bug to PyTorch.
numpy-abi | ModuleNotFoundError: No module named 'numpy.strings'
numpy-abi | ImportError: cannot import name _validate_lengths
extension-build-toolchain | ImportError: Numerical Python (NumPy) is not installed.
unsatisfiable | ould not find a version that satisfies the requirement torch==1.9.0+cu102 (from versions: none)
"""  # noqa: RUF001  # Russian


@pytest.mark.parametrize(("fault", "text"), [tuple(line.split(" | ", 1)) for line in SPELLINGS.strip().splitlines()])
def test_every_spelling_leads_to_its_fault_first(fault: str, text: str) -> None:
    findings = diagnosed(text).findings
    assert findings, "no signature knows it"
    assert findings[0].fault == fault
    assert findings[0].confidence >= CERTAIN_ENOUGH


def test_a_submodule_that_is_not_there_is_told_whatever_source_lines_stand_around_it() -> None:
    text = (
        "      6 from huggingface_hub.errors import HFValidationError, RepositoryNotFoundError\n"
        "----> 7 from huggingface_hub.utils import LocalEntryNotFoundError, GatedRepoError\n"
        "ModuleNotFoundError: No module named 'huggingface_hub.errors'"
    )
    assert [finding.fault for finding in diagnosed(text).findings][:1] == ["companion-version"]


@pytest.mark.parametrize(
    ("module", "general"), [("amp_C", "module-of-a-library"), ("mmcv._ext", "submodule-in-library")]
)
def test_a_general_reading_of_a_message_explains_no_better_one(module: str, general: str) -> None:
    frame = '  File "/opt/venv/lib/python3.12/site-packages/ink/ops.py", line 4, in <module>\n    from . import pen\n'
    findings = diagnosed(f"{frame}ModuleNotFoundError: No module named '{module}'").findings
    assert [found.signature for found in findings] == ["compiled-half-missing", general]
    assert findings[0].confidence > findings[1].confidence


def test_a_part_of_a_library_that_is_not_there_is_not_told_as_the_library_being_absent() -> None:
    text = "File \"/x/site-packages/boxes/a.py\", line 3, in <module>\nModuleNotFoundError: No module named 'ink.pens'"
    assert [found.summary for found in diagnosed(text).findings] == [
        "ink has no part pens: the library that asks for it was made for another release"
    ]


def test_a_failed_build_without_its_reason_is_told_and_not_claimed() -> None:
    text = "  Caused by: Failed to fetch wheel: boxes==2.6.1\n  Caused by: Build backend failed to build wheel (exit status: 1)"
    assert [(found.fault, found.confidence < CERTAIN_ENOUGH) for found in diagnosed(text).findings] == [
        ("extension-build-toolchain", True)
    ]


@pytest.mark.parametrize("form", ["{}", "(EngineCore_0 pid=7) ERROR 05-07 05:58:46 [core.py:291] {}"])
@pytest.mark.parametrize("before", [0, 3000], ids=["alone", "in a long log"])
def test_a_line_that_only_underlines_another_parts_no_message(form: str, before: int) -> None:
    raised = [
        '  File "/opt/venv/lib/python3.12/site-packages/boxes/draw.py", line 7, in <module>',
        "    pen = ink.make_pen(width=2)",
        "          ~~~^^^^^^^^^",
        "AttributeError: module 'ink' has no attribute 'make_pen'",
    ]
    text = "\n".join(["an ordinary line"] * before + [form.format(line) for line in raised])
    assert [finding.signature for finding in diagnosed(text).findings][:1] == ["attribute-in-library"]


@pytest.mark.parametrize(
    "text",
    [
        (
            "Installed CUDA version 12.2 does not match the version torch was compiled with 12.6 but since the APIs are "
            "compatible, accepting this combination"
        ),
        "huggingface_hub.errors.GatedRepoError: 401 Client Error. Cannot access gated repo for url https://hub.example/x",
        "raise RepositoryNotFoundError(message, response) from e",
        "ValueError: Bfloat16 is only supported on GPUs with compute capability of at least 8.0.",
        "subprocess.CalledProcessError: Command '['ffmpeg', '-i', 'a.mp4']' returned non-zero exit status 1.",
        "[TRT] Cuda initialization failure with error 2. Please check cuda installation",
        "TypeError: InkTrainer.__init__() got an unexpected keyword argument 'tokenizer'",
        "KeyError: 'model'",
        (
            "ops.py:31: UserWarning: Failed to load custom C++ ops. Running on CPU mode Only!\n"
            "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory"
        ),
        "ImportError: torch 与 ink 的版本不匹配, numpy 版本过低",
    ],
)
def test_what_only_looks_like_it_is_no_fault(text: str) -> None:
    assert all(finding.confidence < CERTAIN_ENOUGH for finding in diagnosed(text).findings)
