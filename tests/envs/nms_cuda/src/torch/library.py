# ruff: noqa: ANN001
"""Registration of shape functions for operators that exist."""

from torch import _C


def register_fake(qualified):
    """Decorator: the function computes what comes out of an operator without running it."""

    def register(function):
        if _C._dispatch_has_kernel_for_dispatch_key(qualified, "Meta"):
            raise RuntimeError(f"register_fake(...): the operator {qualified} already has a Meta kernel")
        _C._kernels.setdefault(qualified, {})["Meta"] = (function, "torch.library.register_fake")
        return function

    return register
