"""The import that the last traceback of a text shows failing."""

from __future__ import annotations

import pytest

from envmedic.playbook.matching.failures import failures

SITE = "/opt/env/lib/python3.11/site-packages"


def frame(path: str, function: str = "<module>", prefix: str = "") -> str:
    return f'{prefix}  File "{path}", line 3, in {function}\n{prefix}    import something'


def text(*frames: str, error: str = "ImportError: libcudnn.so.9: cannot open shared object file") -> str:
    return "\n".join(["Traceback (most recent call last):", *frames, error])


IN_FUNCTION = text(
    frame("/home/u/train.py"), frame(f"{SITE}/torch/nn/functional.py", "conv2d"), error="RuntimeError: no"
)
IN_IMPORT = text(
    frame("/home/u/train.py"),
    frame(f"{SITE}/torchvision/__init__.py"),
    frame(f"{SITE}/torchvision/_meta_registrations.py"),
)
LAZY = text(
    frame("/home/u/train.py"),
    frame(f"{SITE}/transformers/utils/import_utils.py", "__getattr__"),
    frame(f"{SITE}/transformers/models/llama/modeling_llama.py"),
)


@pytest.mark.parametrize(
    ("log", "module"),
    [
        (IN_IMPORT, "torchvision"),
        (LAZY, "transformers.models.llama.modeling_llama"),
        (IN_FUNCTION, None),
        (text(frame("/home/u/train.py")), None),
        (f"{IN_FUNCTION}\n{IN_IMPORT}", "torchvision"),
        (f"{IN_IMPORT}\n{IN_FUNCTION}", None),
        (IN_IMPORT.replace("\n", "\n[rank0]: "), "torchvision"),
        (text(frame("/usr/lib/python3/dist-packages/yaml/_yaml.py")), "yaml._yaml"),
        (text(frame("/home/u/src/pkg/__init__.py")), None),
    ],
    ids=[
        "import",
        "lazy",
        "function",
        "program",
        "later import",
        "later function",
        "rank",
        "of the system",
        "checkout",
    ],
)
def test_the_outermost_import_of_a_package_counts(log: str, module: str | None) -> None:
    lines = enumerate((line.encode() for line in log.split("\n")), start=1)
    assert failures(lines).importing == module
