"""What the paths in a text say: the import that its last traceback shows failing, and the system that it is of."""

from __future__ import annotations

import pytest

from envmedic.playbook.matching.failures import failures
from envmedic.playbook.matching.named_paths import named_paths

SITE = "/opt/env/lib/python3.11/site-packages"


def frame(path: str, function: str = "<module>", prefix: str = "") -> str:
    return f'{prefix}  File "{path}", line 3, in {function}\n{prefix}    import something'


def text(*frames: str, error: str = "ImportError: libcudnn.so.9: cannot open shared object file") -> str:
    return "\n".join(["Traceback (most recent call last):", *frames, error])


IN_FUNCTION = text(
    frame("/home/user/train.py"), frame(f"{SITE}/torch/nn/functional.py", "conv2d"), error="RuntimeError: no"
)
IN_IMPORT = text(
    frame("/home/user/train.py"),
    frame(f"{SITE}/torchvision/__init__.py"),
    frame(f"{SITE}/torchvision/_meta_registrations.py"),
)
LAZY = text(
    frame("/home/user/train.py"),
    frame(f"{SITE}/transformers/utils/import_utils.py", "__getattr__"),
    frame(f"{SITE}/transformers/models/llama/modeling_llama.py"),
)


@pytest.mark.parametrize(
    ("log", "module"),
    [
        (IN_IMPORT, "torchvision"),
        (LAZY, "transformers.models.llama.modeling_llama"),
        (IN_FUNCTION, None),
        (text(frame("/home/user/train.py")), None),
        (f"{IN_FUNCTION}\n{IN_IMPORT}", "torchvision"),
        (f"{IN_IMPORT}\n{IN_FUNCTION}", None),
        (IN_IMPORT.replace("\n", "\n[rank0]: "), "torchvision"),
        (text(frame("/usr/lib/python3/dist-packages/yaml/_yaml.py")), "yaml._yaml"),
        (text(frame("/home/user/src/pkg/__init__.py")), None),
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


@pytest.mark.parametrize(
    ("log", "system"),
    [
        ('File "C:\\Users\\u\\env\\Lib\\site-packages\\torch\\__init__.py", line 3', "Windows"),
        ('OSError: [WinError 126] Error loading "D:\\\\ai tools\\\\torch\\\\lib\\\\fbgemm.dll"', "Windows"),
        ('File "/Users/u/env/lib/python3.12/site-packages/torch/__init__.py", line 3', "macOS"),
        ('File "/home/user/env/lib/python3.12/site-packages/torch/__init__.py", line 3', None),
        ("mounted C:\\work\\data at /mnt/c/work", None),
        ("see https://example.org/Users/guide for torch:\\n", None),
        ("no path", None),
    ],
)
def test_a_text_of_another_system_is_known_by_its_paths(log: str, system: str | None) -> None:
    assert named_paths([(1, log.encode())]).origin.system == system
