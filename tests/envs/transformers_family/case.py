"""Builds the broken environments of this case from miniature wheels. See README.md."""

from __future__ import annotations

from pathlib import Path

from tests.support.native_case import NativeCase, build_native
from tests.support.repairs import pure

PROGRAM = "import transformers\n\nprint('ready')\n"
SENTENCES = "import sentence_transformers\n\nprint('ready')\n"
WORKS = "ready\n"
COMPARES = """
import importlib.metadata


def _numbers(text):
    return tuple(map(int, text.split('.')))


for name, first, end in (('huggingface-hub', '0.23.2', '1.0'), ('tokenizers', '0.20', '0.21')):
    found = importlib.metadata.version(name)
    if not _numbers(first) <= _numbers(found) < _numbers(end):
        raise ImportError(
            f'{name}>={first},<{end} is required for a normal functioning of this module, but found {name}=={found}.\\n'
            'Try: `pip install transformers -U`'
        )
"""


def build(room: Path, *installed: str, program: str = PROGRAM) -> NativeCase:
    """An environment with a transformers and the `installed` pins of libraries around it."""
    directory = room / "wheels"
    requires = ("huggingface-hub<1.0,>=0.23.2", "tokenizers<0.21,>=0.20")
    hub = ("huggingface-hub<1.0,>=0.16.4",)
    wheels = [
        pure(directory, "transformers", "4.46.3", COMPARES, requires=requires),
        pure(directory, "tokenizers", "0.20.3", "", requires=hub),
        pure(directory, "tokenizers", "0.21.0", "", requires=hub),
        pure(directory, "huggingface-hub", "0.25.2", "def cached_download():\n    return None\n"),
        pure(directory, "huggingface-hub", "0.36.2", ""),
        pure(directory, "huggingface-hub", "1.0.1", ""),
        pure(
            directory,
            "sentence-transformers",
            "2.2.2",
            "from huggingface_hub import cached_download\n",
            requires=("huggingface-hub>=0.4.0",),
        ),
    ]
    return build_native(room, wheels, ["transformers", *installed], program)
