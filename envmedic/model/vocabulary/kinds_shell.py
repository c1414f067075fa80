"""Facts on variables of the shell that lead programs astray."""

from __future__ import annotations

from envmedic.model.vocabulary.fact_kind import FactKind, FactType

_ROWS: tuple[tuple[str, FactType, str, str | None], ...] = (
    (
        "shell.stubs",
        "strings",
        "directories in LD_LIBRARY_PATH whose libcuda.so.1 is the stand-in of a toolkit, found before the driver's",
        None,
    ),
    (
        "shell.stubs-line",
        "string",
        "the line for the shell that takes them out of LD_LIBRARY_PATH, None without any",
        "shell.stubs",
    ),
    (
        "shell.cuda-line",
        "string",
        "the line that takes what hides the environment's CUDA libraries out of LD_LIBRARY_PATH and LD_PRELOAD, else None",
        "nvidia.shadowed",
    ),
    ("shell.preloads-lost", "strings", "entries of LD_PRELOAD that lead to no file", None),
    (
        "shell.preloads-line",
        "string",
        "the line for the shell that takes them out of LD_PRELOAD, None without any",
        "shell.preloads-lost",
    ),
    (
        "shell.interface-unknown",
        "string",
        "value of NCCL_SOCKET_IFNAME or GLOO_SOCKET_IFNAME that names no network interface of this host, else None",
        "shell.interface-line",
    ),
    ("shell.interface-line", "string", "the line for the shell that unsets it, None where nothing is wrong", None),
    (
        "shell.allocator",
        "string",
        "the variable with settings of torch's memory allocator, and its value, None where none is set",
        "shell.allocator-line",
    ),
    ("shell.allocator-line", "string", "the line for the shell that unsets it, None where none is set", None),
    (
        "shell.precision",
        "string",
        "NVIDIA_TF32_OVERRIDE or TORCH_ALLOW_TF32_CUBLAS_OVERRIDE with its value where it forces TF32, else None",
        "shell.precision-line",
    ),
    ("shell.precision-line", "string", "the line for the shell that unsets it, None where none is set", None),
    (
        "shell.caches",
        "strings",
        "the variables that name directories of caches of compiled code, with their values",
        None,
    ),
    (
        "shell.devices-unknown",
        "string",
        "the entries of CUDA_VISIBLE_DEVICES that no GPU of this host has, in a sentence, None without any",
        "shell.devices-line",
    ),
    ("shell.devices-line", "string", "the line for the shell that unsets it, None where nothing is wrong", None),
    (
        "shell.gpus-hidden",
        "string",
        "how CUDA_VISIBLE_DEVICES hides GPUs of this host, None where it does not",
        "shell.gpus-line",
    ),
    ("shell.gpus-line", "string", "the line for the shell that shows them again, None where none is hidden", None),
)
KINDS: tuple[FactKind, ...] = tuple(
    FactKind(name=name, type=kind, doc=doc, detail=detail) for name, kind, doc, detail in _ROWS
)
"""Each is derived by `diagnosis.areas.shell_variables`."""
