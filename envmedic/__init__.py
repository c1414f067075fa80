"""envmedic repairs broken PyTorch/CUDA environments: diagnose, plan, apply in a clone, undo."""

from __future__ import annotations

TYPE_CHECKING = False  # as in typing, which takes longer to load than `--version` may
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from typing import Any

__version__ = "0.1.0"

DAMAGED = (
    "The byte code in {} is damaged",
    "The disk was full or lost power when Python wrote it, or is failing",
    "Delete the file, and Python makes it again from the source; or reinstall envmedic",
)
"""What happened, the cause and the next step. Here and not in `errors`, whose own byte code may be damaged."""


def damaged_byte_code(error: BaseException) -> str | None:
    """The file of byte code whose damage raised `error`; None for every other error.

    That is one that Python cannot read, or one of ours in which the error occurred and which differs from what its
    source gives.
    """
    trace = error.__traceback__
    while trace is not None:
        code, frame = trace.tb_frame.f_code, trace.tb_frame
        if (code.co_name, code.co_filename) == ("_compile_bytecode", "<frozen importlib._bootstrap_external>"):
            return str(frame.f_locals.get("bytecode_path"))
        spec = frame.f_globals.get("__spec__")
        if spec is not None and spec.name.partition(".")[0] == __name__ and _differs(spec):
            return str(spec.cached)
        trace = trace.tb_next
    return None


def load_ipython_extension(shell: Any) -> None:
    """``%load_ext envmedic`` in a kernel whose environment has envmedic."""
    from importlib import import_module  # by name, since no other part of envmedic depends on it

    import_module(f"{__name__}.notebook.in_kernel.envmedic").load_ipython_extension(shell)


def _differs(spec: ModuleSpec) -> bool:
    """Whether Python takes other code for a module than its source gives."""
    loader: Any = spec.loader
    try:
        fresh = loader.source_to_code(loader.get_data(spec.origin), spec.origin)
    except (AttributeError, OSError, SyntaxError, ValueError):  # no source, or it is what is damaged
        return False
    try:
        return bool(loader.get_code(spec.name) != fresh)
    except (EOFError, ValueError, TypeError, ImportError):  # what marshal makes of damage
        return True
