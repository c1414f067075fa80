"""The first repair on real torch: a CUDA build of torch with a torchvision that belongs to another torch."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import uv

from tests.real.manifest import changed, manifest

pytestmark = [
    pytest.mark.real_torch,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(sys.version_info >= (3, 13), reason="torch 2.5.1 has no wheel for this Python"),
]
ROOT = Path(__file__).resolve().parents[2]
NMS = """
import torch, torchvision
boxes = torch.tensor([[0., 0., 10., 10.], [1., 1., 10., 10.], [20., 20., 30., 30.]])
print(torchvision.ops.nms(boxes, torch.tensor([.9, .8, .7]), .5).tolist())
"""
NO_BYTE_CODE = {"PYTHONDONTWRITEBYTECODE": "1"}


@dataclass(frozen=True)
class BrokenEnv:
    """A venv with torch 2.5.1, a wrong torchvision, other packages, an editable install and an edited file."""

    prefix: Path
    """As the user names it; a symbolic link in one of the cases."""
    real: Path
    torchvision: str

    def python(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the environment's Python without leaving byte code."""
        return run([str(self.prefix / "bin/python"), *arguments])


def run(argv: list[str], **settings: Any) -> subprocess.CompletedProcess[str]:
    """Run to the end and return it, whatever its exit status."""
    environment = {**os.environ, **NO_BYTE_CODE}
    return subprocess.run(argv, capture_output=True, text=True, check=False, env=environment, **settings)


def envmedic(*arguments: str, code: int) -> dict[str, Any]:
    """Run envmedic with ``--json`` and return its document."""
    done = run([sys.executable, "-m", "envmedic", arguments[0], "--json", *arguments[1:]], cwd=ROOT)
    assert done.returncode == code, f"exit {done.returncode}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def build(real: Path, prefix: Path, torchvision: str) -> BrokenEnv:
    """Build the broken environment at `real`; `prefix` is how the user names it."""
    uv_bin = uv.find_uv_bin()
    real.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run([sys.executable, "-m", "venv", str(real)], check=True)
    install = [uv_bin, "pip", "install", "--quiet", "--python", str(real / "bin/python")]
    subprocess.run([*install, "torch==2.5.1", "numpy", "pillow", "transformers"], check=True)
    subprocess.run([*install, "--no-deps", f"torchvision=={torchvision}"], check=True)
    project = real.parent / f"project-{torchvision}"
    (project / "trainer").mkdir(parents=True)
    (project / "trainer/__init__.py").write_text("NAME = 'trainer'\n")
    (project / "pyproject.toml").write_text("[project]\nname = 'trainer'\nversion = '1'\n")
    subprocess.run([*install, "--no-deps", "--editable", str(project)], check=True)
    edited = next(real.glob("lib/python3*/site-packages/transformers/__init__.py"))
    text = edited.read_text()
    edited.unlink()  # the installer hard-links from its cache
    edited.write_text(text + "\n# edited by hand\n")
    if prefix != real:
        prefix.symlink_to(real)
    return BrokenEnv(prefix=prefix, real=real, torchvision=torchvision)


@pytest.fixture(scope="module")
def workspace() -> Iterator[Path]:
    """A directory in the checkout, on the file system that users have, removed afterwards."""
    path = ROOT / ".real"
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir()
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="module", params=["0.18.1", "0.19.1"])
def broken(request: pytest.FixtureRequest, workspace: Path) -> Iterator[BrokenEnv]:
    """0.18.1 fails at import; 0.19.1 imports cleanly and has its CUDA kernel under CPU."""
    if request.param == "0.18.1":
        env = build(workspace / "plain/env", workspace / "plain/env", request.param)
    else:
        env = build(workspace / "with spaces é/my env", workspace / "link", request.param)
    yield env
    shutil.rmtree(env.real.parent)


def test_repair_is_proven_and_undo_is_byte_for_byte(broken: BrokenEnv) -> None:
    original = manifest(broken.real)
    assert broken.python("-c", NMS).returncode != 0

    record = envmedic("apply", "--playbook", "nms-cuda", "--yes", "--no-gpu", "-p", str(broken.prefix), code=0)

    assert record["environment"] == "repaired"
    assert record["gpu"] == "not verified"
    proof = broken.python("-c", NMS)
    assert (proof.returncode, proof.stdout) == (0, "[0, 2]\n"), proof.stderr
    assert broken.python("-c", "import trainer; print(trainer.NAME)").stdout == "trainer\n"
    repaired = manifest(broken.real)
    touched = {path for path in changed(original, repaired) if "/torchvision" not in path}
    assert touched == {".envmedic-tx"}
    versions = {item["name"]: item["version"] for item in record["after"]}
    assert versions["torchvision"].startswith("0.20.1")
    assert {name for name in versions if versions[name] != next(
        (item["version"] for item in record["before"] if item["name"] == name), None
    )} == {"torchvision"}  # fmt: skip

    undone = envmedic("undo", "--yes", "-p", str(broken.prefix), code=0)

    assert undone["environment"] == "restored"
    assert manifest(broken.real) == original

    envmedic("redo", "--yes", "-p", str(broken.prefix), code=0)
    assert manifest(broken.real) == repaired
    envmedic("undo", "--yes", "-p", str(broken.prefix), code=0)
    assert manifest(broken.real) == original


def test_without_a_gpu_nothing_is_swapped_in(broken: BrokenEnv) -> None:
    if shutil.which("nvidia-smi"):
        pytest.skip("this machine has an NVIDIA driver")
    original = manifest(broken.real)
    document = envmedic("apply", "--playbook", "nms-cuda", "--yes", "-p", str(broken.prefix), code=4)
    assert "GPU" in json.dumps(document)
    assert manifest(broken.real) == original
