"""C++ names in readable form."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable
from functools import lru_cache


def demangle(symbols: Iterable[str]) -> dict[str, str | None]:
    """Return symbol → declaration; None for what is no C++ name, or where libstdc++ is missing."""
    # the library is loaded only for a C++ name: most reports have none
    mangled = list(symbols)
    function = _demangler() if any(symbol.startswith("_Z") for symbol in mangled) else None
    return {
        symbol: function(symbol) if function is not None and symbol.startswith("_Z") else None for symbol in mangled
    }


@lru_cache(maxsize=1)
def _demangler() -> Callable[[str], str | None] | None:
    """``__cxa_demangle`` of the C++ runtime."""
    try:
        function = ctypes.CDLL("libstdc++.so.6")["__cxa_demangle"]
        free = ctypes.CDLL(None)["free"]
    except (OSError, AttributeError):
        return None
    # not c_char_p: ctypes would turn it into bytes, and the address to free would be lost
    function.restype = ctypes.c_void_p
    function.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    free.argtypes = [ctypes.c_void_p]

    def call(symbol: str) -> str | None:
        address = function(symbol.encode("utf-8", "replace"), None, None, None)
        if not address:
            return None
        try:
            return ctypes.string_at(address).decode("utf-8", "replace")
        finally:
            free(address)

    return call
