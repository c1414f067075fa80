"""Edits of torch's and torchvision's Python, as a bad release or a hand would make them; `ENVMEDIC_EDIT` names one.

On PYTHONPATH, Python imports this at its start. A function is replaced as soon as its package has been imported; each
call that goes wrong is written to the file `ENVMEDIC_HITS`.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])
EDIT = os.environ.get("ENVMEDIC_EDIT", "")
EDITS: dict[str, tuple[str, Any]] = {}
"""Name → the package that is edited, and the function that edits it."""


class Loader:
    """Edits a package as soon as it has been imported."""

    def find_spec(self, name: str, *_where: Any) -> Any:
        """The package's own spec, with a loader that goes on to edit it."""
        if name != EDITS[EDIT][0]:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module: Any) -> None:
            execute(module)
            EDITS[EDIT][1](module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def hit() -> None:
    """Tell that something goes wrong now."""
    path = os.environ.get("ENVMEDIC_HITS")
    if path:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write("x")


def edit(package: str = "torch") -> Callable[[Function], Function]:
    """Register the function as the edit of its name."""

    def register(function: Function) -> Function:
        EDITS[function.__name__.replace("_", "-")] = (package, function)
        return function

    return register


def replaced(holder: Any, name: str, make: Any) -> None:
    """Replace ``holder.name`` by ``make(original)``."""
    original = getattr(holder, name)
    setattr(holder, name, functools.wraps(original, updated=())(make(original)))


def gpu(x: Any) -> bool:
    """Whether `x` is on a GPU, or the edit is to be seen without one; references of the checks are on the CPU, in fp64."""
    on = x.is_cuda or os.environ.get("ENVMEDIC_EDIT_ON") == "cpu"
    if on:
        hit()
    return bool(on)


def scaled(holder: Any, name: str, factor: float, when: Any = lambda *_a, **_k: True) -> None:
    """Multiply the result of a function."""

    def make(original: Any) -> Any:
        def call(x: Any, *rest: Any, **named: Any) -> Any:
            result = original(x, *rest, **named)
            return result * factor if when(x, *rest, **named) and gpu(x) else result

        return call

    replaced(holder, name, make)


def without(holder: Any, name: str, argument: str, value: Any) -> None:
    """Leave a named argument out, or give it another value."""

    def make(original: Any) -> Any:
        def call(x: Any, *rest: Any, **named: Any) -> Any:
            if argument in named and named[argument] != value and gpu(x):
                named[argument] = value
            return original(x, *rest, **named)

        return call

    replaced(holder, name, make)


@edit()
def causal_ignored(torch: Any) -> None:
    """Attention sees the future."""
    without(torch.nn.functional, "scaled_dot_product_attention", "is_causal", False)


@edit()
def mask_ignored(torch: Any) -> None:
    """Attention sees what is masked."""

    def make(original: Any) -> Any:
        def call(query: Any, *rest: Any, **named: Any) -> Any:
            if named.get("attn_mask") is not None and gpu(query):
                del named["attn_mask"]
            return original(query, *rest, **named)

        return call

    replaced(torch.nn.functional, "scaled_dot_product_attention", make)


@edit()
def long_attention_off(torch: Any) -> None:
    """Attention beyond 1,024 positions is off by 2 %."""
    scaled(torch.nn.functional, "scaled_dot_product_attention", 1.02, lambda q, *_a, **_k: q.shape[-2] > 1024)


@edit()
def pointwise_off(torch: Any) -> None:
    """Convolutions of 1 x 1 are off by 10 %."""
    scaled(torch.nn.functional, "conv2d", 1.1, lambda _x, w, *_a, **_k: tuple(w.shape[2:]) == (1, 1))


@edit()
def by_channel_off(torch: Any) -> None:
    """Convolutions by channel are off by 2 %."""
    scaled(torch.nn.functional, "conv2d", 1.02, lambda x, w, *_a, **_k: w.shape[1] == 1 and x.shape[1] > 1)


@edit()
def conv3d_off(torch: Any) -> None:
    """Convolutions in three dimensions are off by 2 %."""
    scaled(torch.nn.functional, "conv3d", 1.02)


@edit()
def strided_gradient(torch: Any) -> None:
    """The gradient of convolutions with strides is off by 5 %."""

    def make(original: Any) -> Any:
        def call(x: Any, *rest: Any, **named: Any) -> Any:
            result = original(x, *rest, **named)
            stride = named.get("stride", 1)
            if stride not in (1, (1, 1)) and result.requires_grad and gpu(x):
                result.register_hook(lambda gradient: gradient * 1.05)
            return result

        return call

    replaced(torch.nn.functional, "conv2d", make)


@edit()
def half_linear_off(torch: Any) -> None:
    """Linear layers in bf16 are off by 2 %."""
    scaled(torch.nn.functional, "linear", 1.02, lambda x, *_a, **_k: x.dtype == torch.bfloat16)


@edit()
def bias_forgotten(torch: Any) -> None:
    """Linear layers forget their bias."""

    def make(original: Any) -> Any:
        def call(x: Any, weight: Any, bias: Any = None) -> Any:
            return original(x, weight, None if bias is not None and gpu(x) else bias)

        return call

    replaced(torch.nn.functional, "linear", make)


@edit()
def gru_gate(torch: Any) -> None:
    """GRU is off by 1 %."""

    def make(original: Any) -> Any:
        def call(x: Any, *rest: Any) -> Any:
            result = original(x, *rest)
            return (result[0] * 1.01, *result[1:]) if gpu(x) else result

        return call

    replaced(torch._VF, "gru", make)


@edit()
def layer_norm_epsilon(torch: Any) -> None:
    """Layer normalization takes another epsilon."""

    def make(original: Any) -> Any:
        def call(x: Any, shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
            return original(x, shape, weight, bias, eps + 0.01 if gpu(x) else eps)

        return call

    replaced(torch.nn.functional, "layer_norm", make)


@edit()
def group_norm_groups(torch: Any) -> None:
    """Group normalization takes half as many groups."""

    def make(original: Any) -> Any:
        def call(x: Any, groups: int, *rest: Any, **named: Any) -> Any:
            return original(x, groups // 2 if groups > 1 and gpu(x) else groups, *rest, **named)

        return call

    replaced(torch.nn.functional, "group_norm", make)


@edit()
def norm_momentum(torch: Any) -> None:
    """Batch normalization forgets its running statistics."""

    def make(original: Any) -> Any:
        def call(x: Any, mean: Any, variance: Any, *rest: Any, **named: Any) -> Any:
            if rest and len(rest) > 2 and rest[2] and gpu(x):
                return original(x, mean.clone(), variance.clone(), *rest, **named)
            return original(x, mean, variance, *rest, **named)

        return call

    replaced(torch.nn.functional, "batch_norm", make)


@edit()
def softmax_axis(torch: Any) -> None:
    """Softmax always takes the last axis."""

    def make(original: Any) -> Any:
        def call(x: Any, dim: Any = None, *rest: Any, **named: Any) -> Any:
            return original(x, -1 if dim not in (None, -1, x.dim() - 1) and gpu(x) else dim, *rest, **named)

        return call

    replaced(torch.nn.functional, "softmax", make)


@edit()
def smoothing_ignored(torch: Any) -> None:
    """Cross entropy does not smooth."""
    without(torch.nn.functional, "cross_entropy", "label_smoothing", 0.0)


@edit()
def ignored_counted(torch: Any) -> None:
    """Cross entropy divides by all labels, those to be ignored too."""
    scaled(torch.nn.functional, "cross_entropy", 0.9, lambda *_a, **named: "ignore_index" in named)


@edit()
def gelu_by_tanh(torch: Any) -> None:
    """GELU is its approximation by tanh."""

    def make(original: Any) -> Any:
        def call(x: Any, *_rest: Any, **_named: Any) -> Any:
            return original(x, approximate="tanh") if gpu(x) else original(x)

        return call

    replaced(torch.nn.functional, "gelu", make)


@edit()
def embedding_gradient(torch: Any) -> None:
    """The gradient of an embedding forgets words that come twice."""

    def make(original: Any) -> Any:
        def call(words: Any, table: Any, *rest: Any, **named: Any) -> Any:
            result = original(words, table, *rest, **named)
            if result.requires_grad and gpu(words):
                result.register_hook(lambda gradient: gradient * 0.5)
            return result

        return call

    replaced(torch.nn.functional, "embedding", make)


@edit()
def sort_upwards(torch: Any) -> None:
    """Sorting is ascending whatever is asked for."""
    without(torch, "sort", "descending", False)


@edit()
def topk_second(torch: Any) -> None:
    """topk leaves the largest out."""

    def make(original: Any) -> Any:
        def call(x: Any, count: int, *rest: Any, **named: Any) -> Any:
            if not gpu(x):
                return original(x, count, *rest, **named)
            values, places = original(x, count + 1, *rest, **named)
            return values[..., 1:], places[..., 1:]

        return call

    replaced(torch, "topk", make)


@edit()
def index_add_once(torch: Any) -> None:
    """index_add keeps one of the rows that have the same place."""

    def make(original: Any) -> Any:
        def call(x: Any, axis: int, index: Any, rows: Any, **named: Any) -> Any:
            if not gpu(x):
                return original(x, axis, index, rows, **named)
            return x.index_copy_(axis, index, x.index_select(axis, index) + rows)

        return call

    replaced(torch.Tensor, "index_add_", make)


@edit()
def cumsum_narrow(torch: Any) -> None:
    """cumsum adds in bf16."""

    def make(original: Any) -> Any:
        def call(x: Any, axis: int, **named: Any) -> Any:
            return (
                original(x.bfloat16(), axis).to(named.get("dtype", x.dtype)) if gpu(x) else original(x, axis, **named)
            )

        return call

    replaced(torch, "cumsum", make)


@edit()
def corners_aligned(torch: Any) -> None:
    """Interpolation aligns corners."""
    without(torch.nn.functional, "interpolate", "align_corners", True)


@edit()
def pooling_padded(torch: Any) -> None:
    """Average pooling is off by 2 %."""
    scaled(torch.nn.functional, "avg_pool2d", 1.02)


@edit()
def dropout_share(torch: Any) -> None:
    """Dropout drops one in a hundred more."""

    def make(original: Any) -> Any:
        def call(x: Any, p: float = 0.5, *rest: Any, **named: Any) -> Any:
            return original(x, p + 0.01 if gpu(x) else p, *rest, **named)

        return call

    replaced(torch.nn.functional, "dropout", make)


@edit()
def random_repeats(torch: Any) -> None:
    """Random numbers repeat each other in every second half."""

    def make(original: Any) -> Any:
        def call(*shape: Any, **named: Any) -> Any:
            result = original(*shape, **named)
            if result.is_cuda and result.numel() > 1:
                hit()
                again = getattr(torch, "_kept", result)
                torch._kept = result
                return again.reshape(-1)[: result.numel()].reshape(result.shape) if again is not result else result
            return result

        return call

    replaced(torch, "rand", make)


@edit()
def decay_ignored(torch: Any) -> None:
    """AdamW forgets its weight decay."""

    def make(original: Any) -> Any:
        def call(self: Any, parameters: Any, *rest: Any, **named: Any) -> None:
            hit()
            named["weight_decay"] = 0.0
            original(self, parameters, *rest, **named)

        return call

    replaced(torch.optim.AdamW, "__init__", make)


@edit()
def infinite_steps(torch: Any) -> None:
    """The scaler takes steps with infinite gradients."""
    scaler = torch.amp.GradScaler

    def make(_original: Any) -> Any:
        def call(_self: Any, optimizer: Any, *_rest: Any, **_named: Any) -> Any:
            hit()
            return optimizer.step()

        return call

    replaced(scaler, "_maybe_opt_step", make)


@edit()
def autocast_off(torch: Any) -> None:
    """autocast does nothing."""

    def make(original: Any) -> Any:
        def call(self: Any, *rest: Any, **named: Any) -> None:
            hit()
            original(self, *rest, **{**named, "enabled": False})

        return call

    replaced(torch.autocast, "__init__", make)


@edit()
def narrow_places(torch: Any) -> None:
    """Places beyond 2**31 are cut to 31 bits."""

    def make(original: Any) -> Any:
        def call(x: Any, axis: int, index: Any) -> Any:
            return original(x, axis, index & 0x7FFFFFFF if gpu(x) else index)

        return call

    replaced(torch.Tensor, "index_select", make)


@edit()
def not_awaited(torch: Any) -> None:
    """Streams do not wait for events."""

    def make(_original: Any) -> Any:
        def call(_self: Any, _event: Any) -> None:
            hit()

        return call

    replaced(torch.cuda.Stream, "wait_event", make)


@edit()
def tf32_at_import(torch: Any) -> None:
    """TF32 is switched on by an import."""
    hit()
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.allow_tf32 = True


@edit("torchvision")
def nms_many(torchvision: Any) -> None:
    """nms looks at the best 1,000 boxes alone."""

    def make(original: Any) -> Any:
        def call(boxes: Any, scores: Any, threshold: float) -> Any:
            if len(boxes) <= 1000 or not gpu(boxes):
                return original(boxes, scores, threshold)
            best = scores.argsort(descending=True)[:1000]
            return best[original(boxes[best], scores[best], threshold)]

        return call

    replaced(torchvision.ops, "nms", make)


@edit("torchvision")
def kinds_ignored(torchvision: Any) -> None:
    """batched_nms suppresses boxes of other kinds too."""

    def make(_original: Any) -> Any:
        def call(boxes: Any, scores: Any, _kinds: Any, threshold: float) -> Any:
            gpu(boxes)
            return torchvision.ops.nms(boxes, scores, threshold)

        return call

    replaced(torchvision.ops, "batched_nms", make)


if EDIT:
    sys.meta_path.insert(0, Loader())
