"""``envmedic notebook``: for kernels of Jupyter, and IPython in a terminal."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from envmedic.errors import ExitCode
from envmedic.model.base import to_json
from envmedic.notebook import in_kernel
from envmedic.render.streams import write


def notebook(args: argparse.Namespace) -> int:
    """``envmedic notebook``. Raises EnvmedicError with ``--answer``, as a diagnosis does."""
    if args.answer:
        from envmedic.notebook.answer import answer

        write(sys.stdout, to_json(answer(sys.stdin.buffer.read())))
        return int(ExitCode.OK)
    place = str(Path(str(in_kernel.__file__)).parent)
    # last on the path: an envmedic that the environment has goes before it
    write(sys.stdout, f"import sys; sys.path.append({place!r})\n%load_ext envmedic\n")
    return int(ExitCode.OK)
