"""Run by a Python with nbclient: cells from standard input in a kernel of another environment, and what each gave.

JSON in: ``python`` of the kernel, and ``cells``. JSON out: for each cell its outputs as nbformat has them.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import nbformat
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient


def main() -> None:
    """Run the cells, whatever they raise."""
    asked = json.load(sys.stdin)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "asked"
        place.mkdir()
        argv = [asked["python"], "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        (place / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": "asked", "language": "python"}))
        specs = KernelSpecManager(kernel_dirs=[folder])
        manager = AsyncKernelManager(kernel_name="asked", kernel_spec_manager=specs)
        book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in asked["cells"]])
        NotebookClient(book, km=manager, allow_errors=True).execute()
    sys.stdout.write(json.dumps([cell.outputs for cell in book.cells]))


if __name__ == "__main__":
    main()
