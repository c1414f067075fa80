"""The spellings of faults of NVIDIA's libraries, of the driver and of GPUs, and what only looks like them."""

from __future__ import annotations

import pytest

from tests.playbook.helpers import diagnosed

SPELLINGS = """
missing-cuda-library | ImportError: libcublas.so.11: cannot open shared object file: No such file or directory
missing-cuda-library | ImportError: libcudart.so.11.0: cannot open shared object file
missing-cuda-library | OSError: libcurand.so.10: cannot open shared object file: No such file or directory
missing-cuda-library | OSError: libnvrtc.so: cannot open shared object file: No such file or directory
missing-cuda-library | ImportError: libcupti.so.12: cannot open shared object file: No such file or directory
missing-cuda-library | ImportError: libnccl.so.2: cannot open shared object file: No such file or directory
missing-cuda-library | ImportError: libcufile.so.0: cannot open shared object file: No such file or directory
missing-cuda-library | ImportError: libnvshmem_host.so.3: cannot open shared object file: No such file or directory
missing-cuda-library | OSError: libcudnn.so.9: 无法打开共享对象文件: 没有那个文件或目录
missing-cuda-library | Could not load library libcudnn_cnn_infer.so.8. Error: libnvrtc.so: cannot open shared object file
missing-cuda-library | RuntimeError: Library cublas64_12.dll is not found or cannot be loaded
missing-cuda-library | Could not locate zlibwapi.dll. Please make sure it is in your library path!
missing-cuda-library | 2024-01-01 12:00:00.123: W tensorflow/stream_executor/platform/default/dso_loader.cc:64] Could not load dynamic library 'libcudnn.so.8'; dlerror: libcudnn.so.8: cannot open shared object file: No such file or directory
missing-cuda-library | [E:onnxruntime:Default, provider_bridge_ort.cc:1546 TryGetProviderInfo_CUDA] FAIL : Failed to load library libonnxruntime_providers_cuda.so with error: libcublasLt.so.11: cannot open shared object file: No such file or directory
missing-cuda-library | [ONNXRuntimeError] : 1 : FAIL : LoadLibrary failed with error 126 "" when trying to load "C:/Python/Lib/site-packages/onnxruntime/capi/onnxruntime_providers_cuda.dll"
missing-cuda-library | ValueError: libnvrtc.so.*[0-9].* not found in the system path ['']
missing-cuda-library | ValueError: libcublas.so.*[0-9] not found in the system path ['/home/user/x']
missing-cuda-library | ImportError: libcuda.so.1: cannot open shared object file: No such file or directory
missing-cuda-library | error while loading shared libraries: libcudart.so.10.1: cannot open shared object file: No such file or directory
missing-cuda-library | OSError: [WinError 126] 找不到指定的模块。 Error loading "D:/env/lib/site-packages/torch/lib/cudnn_adv_infer64_8.dll" or one of its dependencies.
nvidia-wheel-conflict | ImportError: /x/site-packages/torch/lib/libtorch_cuda.so: undefined symbol: ncclCommSplit
nvidia-wheel-conflict | ImportError: /x/torch/lib/libtorch_cuda.so: undefined symbol: ncclGroupSimulateEnd
nvidia-wheel-conflict | ImportError: /x/torch/lib/libtorch_cuda.so: undefined symbol: ncclCommWindowRegister
nvidia-wheel-conflict | libcusolver.so.11: undefined symbol: cublasSetEnvironmentMode, version libcublas.so.11
nvidia-wheel-conflict | ImportError: /x/libcublas.so.12: symbol cublasLtGetStatusString, version libcublasLt.so.12 not defined in file libcublasLt.so.12 with link time reference
nvidia-wheel-conflict | OSError: /x/nvidia/cublas/lib/libcublas.so.12: undefined symbol: cublasLt_for_cublas_TST, version libcublasLt.so.12
nvidia-wheel-conflict | ImportError: /x/torch/lib/libtorch_cuda.so: undefined symbol: cudaGetDriverEntryPointByVersion, version libcudart.so.12
nvidia-wheel-conflict | ImportError: /x/torch/lib/libtorch_cpu.so: undefined symbol: cuptiActivityEnableDriverApi
nvidia-wheel-conflict | /x/torch/lib/../../nvidia/cusparse/lib/libcusparse.so.12: undefined symbol: __nvJitLinkGetErrorLogSize_12_8, version libnvJitLink.so.12
nvidia-wheel-conflict | ImportError: libcusparse.so.12: undefined symbol: __nvJitLinkAddData_12_1, version libnvJitLink.so.12
cudnn-mismatch | RuntimeError: cuDNN version mismatch: PyTorch was compiled against 7102 but linked against 7600
cudnn-mismatch | Loaded runtime CuDNN library: 8.0.5 but source was compiled with: 8.6.0.  CuDNN library needs to have matching major version and equal or higher minor version.
cudnn-mismatch | E0000 00:00:1 cuda_dnn.cc:522] Loaded runtime CuDNN library: 9.1.0 but source was compiled with: 9.3.0.
cudnn-mismatch | Could not load library libcudnn_cnn_train.so.8. Error: /usr/local/cuda/lib64/libcudnn_cnn_train.so.8: undefined symbol: _ZN5cudnn3cnn5infer22queryClusterPropertiesERPhS3_, version libcudnn_cnn_infer.so.8
cudnn-mismatch | RuntimeError: cuDNN error: CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED
cudnn-mismatch | RuntimeError: cuDNN error: CUDNN_STATUS_NOT_INITIALIZED
cudnn-mismatch | Could not load symbol cudnnGetLibConfig. Error: /usr/lib/x86_64-linux-gnu/libcudnn.so.8: undefined symbol: cudnnGetLibConfig
cudnn-mismatch | RuntimeError: GET was unable to find an engine to execute this computation
cudnn-mismatch | symbol lookup error: /x/libcudnn_engines_precompiled.so.9: undefined symbol: _ZN5cudnn7backend
cudnn-mismatch | ImportError: /x/ext.so: undefined symbol: cudnnSetConvolutionMathType
cpu-only-torch | AssertionError: Torch not compiled with CUDA enabled
cpu-only-torch | RuntimeError: Distributed package doesn't have NCCL built in
cpu-only-torch | NotImplementedError: Could not run 'aten::empty.memory_format' with arguments from the 'CUDA' backend.
cpu-only-torch | AttributeError: module 'torch._C' has no attribute '_cuda_getDeviceCount'
cpu-only-torch | print(torch.version.cuda)  # None
cpu-only-torch | pytorch                   2.3.1               cpu_py311h6d6a6c1_0
cpu-only-torch | pytorch-mutex             1.0                         cpu    pytorch
cpu-only-torch | torch                        2.1.0+cpu
cpu-only-torch | pytorch 1.13.1 py3.9_cpu_0 pytorch
cpu-only-torch | pytorch                    pkgs/main/linux-64::pytorch-2.0.1-cpu_py310hdc00b08_0
cpu-only-torch | AssertionError: CUDA is not available. torch 2.1.2+cpu, torch.cuda.is_available(): False
cpu-only-torch | ImportError: cannot import name '_CudaDeviceProperties' from 'torch._C'
driver-too-old | UserWarning: CUDA initialization: The NVIDIA driver on your system is too old (found version 11040).
driver-too-old | AssertionError: The NVIDIA driver on your system is too old (found version 9010).
driver-too-old | RuntimeError: cuda runtime error (35) : CUDA driver version is insufficient for CUDA runtime version at torch/csrc/cuda/Module.cpp:51
driver-too-old | cudaGetDeviceCount() failed. Status: CUDA driver version is insufficient for CUDA runtime version
driver-too-old | RuntimeError: CUDA error: the provided PTX was compiled with an unsupported toolchain.
driver-too-old | numba.cuda.cudadrv.driver.LinkerError: [222] Call to cuLinkAddData results in CUDA_ERROR_UNSUPPORTED_PTX_VERSION
driver-too-old | nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.1, please update your driver to a newer version, or use an earlier cuda container: unknown
driver-too-old | CUDA error (35): CUDA driver version is insufficient for CUDA runtime version
driver-too-old | cupy_backends.cuda.api.runtime.CUDARuntimeError: cudaErrorInsufficientDriver: CUDA driver version is insufficient for CUDA runtime version
gpu-host-fault | RuntimeError: No CUDA GPUs are available
gpu-host-fault | RuntimeError: Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU and installed a driver from http://www.nvidia.com/Download/index.aspx
gpu-host-fault | AssertionError: Found no NVIDIA driver on your system.
gpu-host-fault | RuntimeError: CUDA error: no CUDA-capable device is detected
gpu-host-fault | RuntimeError: cuda runtime error (100) : no CUDA-capable device is detected at /pytorch/aten/src/THC/THCGeneral.cpp:50
gpu-host-fault | UserWarning: CUDA initialization: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling NumCudaDevices() that might have already set an error? Error 803: system has unsupported display driver / cuda driver combination (Triggered internally at ../c10/cuda/CUDAFunctions.cpp:108.)
gpu-host-fault | RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 804: forward compatibility was attempted on non supported HW
gpu-host-fault | RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 304: OS call failed or operation not supported on this OS
gpu-host-fault | RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 2: out of memory
gpu-host-fault | Failed to initialize NVML: GPU access blocked by the operating system
gpu-host-fault | docker: Error response from daemon: could not select device driver "" with capabilities: [[gpu]].
gpu-host-fault | nvidia-container-cli: initialization error: WSL environment detected but no adapters were found: unknown
gpu-host-fault | RuntimeError: CUDA error: uncorrectable ECC error encountered
gpu-host-fault | NVRM: Xid (PCI:0000:65:00): 31, pid=14, Ch 00000018, MMU Fault
gpu-host-fault | Unable to determine the device handle for GPU 0000:02:00.0: GPU is lost.  Reboot the system to recover this GPU
gpu-host-fault | pynvml.NVMLError_DriverNotLoaded: Driver Not Loaded
gpu-host-fault | pynvml.nvml.NVMLError_LibraryNotFound: NVML Shared Library Not Found
gpu-host-fault | E tensorflow/stream_executor/cuda/cuda_driver.cc:328] failed call to cuInit: CUDA_ERROR_UNKNOWN: unknown error
gpu-host-fault | failed call to cuInit: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected
gpu-host-fault | RuntimeError: CUDA unknown error - this may be due to an incorrectly set up environment, e.g. changing env variable CUDA_VISIBLE_DEVICES after program start. Setting the available devices to be zero.
gpu-host-fault | RuntimeError: cuda runtime error (999) : unknown error at /opt/conda/conda-bld/pytorch/aten/src/THC/THCGeneral.cpp:50
gpu-host-fault | cuda runtime error (46) : all CUDA-capable devices are busy or unavailable at THCGeneral.cpp:47
gpu-host-fault | torch.cuda.is_available() returns False, CUDA initialization: CUDA driver initialization failed, you might not have a CUDA gpu.
"""


@pytest.mark.parametrize(("fault", "text"), [tuple(line.split(" | ", 1)) for line in SPELLINGS.strip().splitlines()])
def test_every_spelling_leads_to_its_fault_first(fault: str, text: str) -> None:
    findings = diagnosed(text).findings
    assert findings, "no signature knows it"
    assert findings[0].fault == fault


@pytest.mark.parametrize(
    "text",
    [
        "RuntimeError: CUDA error: device-side assert triggered",
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB",
        "RuntimeError: CUDA error: an illegal memory access was encountered",
        'OSError: [WinError 1455] 页面文件太小 无法完成操作。 Error loading "C:/x/torch/lib/caffe2_detectron_ops_gpu.dll" or one of its dependencies.',
        "NVIDIA-SMI 550.54.15    Driver Version: 550.54.15    CUDA Version: 12.4",
        "PyTorch version: 2.5.1+cu124\nIs CUDA available: True\nNvidia driver version: 550.54",
        "RuntimeError: Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the 'spawn' start method",
        "RuntimeError: CUDA error: invalid device ordinal",
        "Unknown CUDA out of memory: CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate(handle)",
        "nvidia-smi shows Driver Version 535, everything is fine; libcudnn.so.8 found at /usr/lib",
    ],
)
def test_what_only_looks_like_it_is_no_fault(text: str) -> None:
    assert all(finding.confidence < 0.5 for finding in diagnosed(text).findings)
