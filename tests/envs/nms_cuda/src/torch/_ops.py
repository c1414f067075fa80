# ruff: noqa: ANN001, ANN002, ANN204
"""`torch.ops`: operators as attributes of their namespace."""

from torch import _C


class _Namespace:
    def __init__(self, name):
        self._name = name

    def __getattr__(self, name):
        qualified = f"{self._name}::{name}"
        if qualified not in _C._schemas:
            raise AttributeError(f"'_OpNamespace' '{self._name}' object has no attribute '{name}'")

        def operator(*arguments):
            return _C._call(qualified, arguments)

        return operator


class _Ops:
    load_library = staticmethod(_C._load_library)

    def __getattr__(self, name):
        return _Namespace(name)


ops = _Ops()
