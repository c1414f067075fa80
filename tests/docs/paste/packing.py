"""Run by `byte_code.mjs` in Pyodide: diagnose every text, then pack the byte code of all that was loaded.

Not imported anywhere. In ``/staged`` lie the modules, `known.msgpack`, and the texts; ``/tmp/packed.zip`` is written.
"""

from __future__ import annotations

import importlib._bootstrap_external as importing
import sys
import zipfile
from pathlib import Path

STAGED = Path("/staged")
STANDARD = "/lib/python314.zip/"
MODULES = f"{STAGED}/modules/"
NATIVE = "msgspec/"
"""Has a compiled library, which can't be loaded from an archive: the worker puts it into files."""
ALWAYS = ("encodings/ascii", "encodings/latin_1", "encodings/utf_", "_pyodide/", "pyodide/")
"""Of the standard library: other texts and another browser may load other parts of them."""

sys.path.insert(0, MODULES)
import pasted  # noqa: E402

pasted.load((STAGED / "known.msgpack").read_bytes())
for text in sorted((STAGED / "texts").iterdir()):
    pasted.diagnose("-", str(text))


def byte_code(source: bytes, name: str) -> bytes:
    code = compile(source, name, "exec", dont_inherit=True, optimize=2)
    return bytes(importing._code_to_hash_pyc(code, b"\0" * 8, checked=False))


origins = [getattr(getattr(module, "__spec__", None), "origin", None) or "" for module in [*sys.modules.values()]]
standard = {origin.removeprefix(STANDARD) for origin in origins if origin.startswith(STANDARD)}
modules = {origin.removeprefix(MODULES) for origin in origins if origin.startswith(MODULES)}
with zipfile.ZipFile(STANDARD.rstrip("/")) as library, zipfile.ZipFile("/tmp/packed.zip", "w") as packed:

    def put(name: str, content: bytes) -> None:
        packed.writestr(zipfile.ZipInfo(name), content)

    for name in sorted(library.namelist()):
        # modules that Python has frozen inside it have no file among the origins, and need none
        if name.endswith(".py") and (name in standard or name.startswith(ALWAYS)):
            put(f"{name}c", byte_code(library.read(name), name))
    native = []
    for name in sorted(modules):
        content = (STAGED / "modules" / name).read_bytes()
        kept, content = (f"{name}c", byte_code(content, name)) if name.endswith(".py") else (name, content)
        if name.startswith(NATIVE):
            native.append(kept)
            kept = f"native/{kept}"
        put(kept, content)
    put("native.txt", "\n".join(native).encode())
    put("known.msgpack", (STAGED / "known.msgpack").read_bytes())
