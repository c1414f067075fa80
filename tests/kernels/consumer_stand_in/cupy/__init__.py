"""A stand-in for CuPy on a machine without a GPU: NVRTC compiles, and libraries open."""

from __future__ import annotations

from types import SimpleNamespace

import lists  # type: ignore[import-not-found]

__version__ = "0"


def _get_ptx(program: str) -> bytes:
    return b"" if lists.FAULT == "wrong at compiler" else program.encode()


class _Cuda:
    runtime = SimpleNamespace(is_hip=False)
    nvrtc = SimpleNamespace(
        createProgram=lambda source, *_: source,
        compileProgram=lambda *_: None,
        getPTX=_get_ptx,
        destroyProgram=lambda _: None,
    )

    def __getattr__(self, name: str) -> object:
        if f"missing at {name}" == lists.FAULT:
            raise ImportError(f"lib{name}.so.12: cannot open shared object file: No such file or directory")
        return object()


cuda = _Cuda()
