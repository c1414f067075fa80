"""What installers, loaders and Python say of doubled, half deleted and hidden packages, and what only looks like it."""

from __future__ import annotations

from functools import cache

import pytest

from envmedic.diagnosis.findings import diagnose
from envmedic.model.findings import Finding
from envmedic.model.playbook import LoadedPlaybook
from envmedic.playbook.matching.match import read_text
from envmedic.playbook.schema import loader

PLAYBOOKS = (
    "duplicate-install", "half-installed", "half-installed-elsewhere", "clobbered", "shadowed-user-site",
    "shadowed-pythonpath", "broken-interpreter",
)  # fmt: skip


@cache
def shipped() -> tuple[LoadedPlaybook, ...]:
    folder = loader.shipped_directory()
    return tuple(loader.load_file(folder / f"{name}.yaml", "shipped") for name in PLAYBOOKS)


def findings(text: str) -> tuple[Finding, ...]:
    playbooks = shipped()
    return diagnose(read_text(text.encode().split(b"\n"), playbooks), None, playbooks, prefix=None, log="log").findings


SPELLINGS = """
leftover-of-the-family | WARNING: Ignoring invalid distribution -orch (c:\\users\\me\\lib\\site-packages)
leftover-of-the-family | [notice] pip: Ignoring invalid distribution ~umpy (/opt/venv/lib/python3.12/site-packages)
leftover-of-the-family | - `pip list`: `Ignoring invalid distribution: ~vidia-cudnn-cu12`
leftover | WARNING: Ignoring invalid distribution -pencv-python (d:\\lib\\site-packages)
leftover-folder | OSError: [WinError 5] Access is denied: 'C:\\\\Python310\\\\Lib\\\\site-packages\\\\~orch\\\\lib\\\\asmjit.dll'
no-record | warning: Failed to uninstall package at /opt/numpy-1.26.4.dist-info due to missing `RECORD` file. Installation may result in an incomplete environment.
no-record | error: uninstall-no-record-file
no-record | ERROR: Cannot uninstall blinker 1.7.0, RECORD file not found. Hint: The package was installed by debian.
distutils-installed | error: uninstall-distutils-installed-package
distutils-installed | error: Unable to uninstall `PyYAML==5.3.1`. distutils-installed distributions do not include the metadata required to uninstall safely.
outside-environment |     Can't uninstall 'torch'. No files were found to uninstall.
conda-clobber | ClobberWarning: This transaction has incompatible packages due to a shared path.
conda-and-pip | pytorch 2.0.1 py3.10_cuda11.8_cudnn8.7.0_0 pytorch{newline}pytorch-cuda 11.8 h7e8668a_5 pytorch{newline}torch 2.1.0 pypi_0 pypi
own-library-gone-macos | OSError: dlopen(/x/torch/lib/libtorch_global_deps.dylib, 0x000A): tried: '/x/torch/lib/libtorch_global_deps.dylib' (no such file)
own-library-gone | OSError: /x/torch/lib/libtorch_python.so: cannot open shared object file: No such file or directory
library-cut-off | ImportError: /x/dist-packages/numpy/core/_multiarray_umath.so: invalid ELF header
own-module-gone | ModuleNotFoundError: No module named 'torch._C'
own-module-gone | **`No module named torch._strobelight`:** the tree is incomplete
empty-torch | AttributeError: module 'torch' has no attribute 'Tensor'
torch-twice | AttributeError: partially initialized module 'torch' has no attribute 'cuda' (most likely due to a circular import)
from-nowhere | ImportError: cannot import name 'PreTrainedModel' from 'transformers' (unknown location)
extension-gone | ImportError: cannot import name '_C' from partially initialized module 'torch' (most likely due to a circular import)
version-none | TypeError: 'NoneType' object is not subscriptable{newline}  at transformers/dependency_versions_check.py:57
metadata-gone | FileNotFoundError: [Errno 2] No such file or directory: '/x/site-packages/torch-2.1.0.dist-info/METADATA'
provided-twice | warning: The module `cv2` is provided by more than one package, which causes an install race condition and can result in a broken module.
path-order | ['', '/home/me/.local/lib/python3.9/site-packages', '/home/me/miniconda3/envs/a/lib/python3.9/site-packages']
bad-interpreter | zsh: /home/me/env/bin/pip: bad interpreter: /home/me/env/bin/python3: no such file or directory
bad-interpreter | -bash: /home/me/env/bin/jupyter: /home/me/env/bin/python3.9: bad interpreter: No such file or directory
no-python-at | No Python at 'C:\\Users\\me\\AppData\\Local\\Programs\\Python\\Python310\\python.exe'
cut-off-library | OSError: libcells.so.1: invalid ELF header
"""


@pytest.mark.parametrize(
    ("signature", "text"), [tuple(line.split(" | ", 1)) for line in SPELLINGS.strip().splitlines()]
)
def test_every_spelling_is_recognised_from_the_text_alone(signature: str, text: str) -> None:
    found = findings(text.replace("{newline}", "\n"))
    assert found, text
    assert (found[0].signature, found[0].confidence >= 0.5) == (signature, True), text


@pytest.mark.parametrize(
    "text",
    [
        "ModuleNotFoundError: No module named 'torch._six'",
        "ModuleNotFoundError: No module named 'torch'",
        "ModuleNotFoundError: No module named 'torch.utils.my_own'",
        "AttributeError: module 'torch' has no attribute 'compile'",
        "AttributeError: module 'torch.nn' has no attribute 'RMSNorm'",
        "ImportError: libcudart.so.12: cannot open shared object file: No such file or directory",
        "ImportError: cannot import name 'AutoModel' from 'transformers' (/x/transformers/__init__.py)",
        "TypeError: 'NoneType' object is not subscriptable",
        "FileNotFoundError: [Errno 2] No such file or directory: 'data/train.json'",
        "Successfully uninstalled numpy-1.26.4",
        "Found existing installation: torch 2.1.0",
        '  File "/home/me/.local/lib/python3.10/site-packages/torch/nn/modules/module.py", line 1518, in _call_impl',
    ],
)
def test_what_has_other_causes_is_not_claimed(text: str) -> None:
    assert all(finding.confidence < 0.5 for finding in findings(text))
