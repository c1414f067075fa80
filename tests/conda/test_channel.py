"""The packages are genuine: what is made of them runs, moves with its prefix, and breaks as the real ones do."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.conda import damage
from tests.conda.channel import Channels
from tests.conda.room import Room, make_room
from tests.gallery.repair_gallery.conda.files import misowned, records, scan
from tests.support import miniature

pytestmark = pytest.mark.long

DRIVER = Path(__file__).resolve().parents[2] / "envmedic" / "kernels" / "driver.py"


def ask(prefix: Path, *arguments: str) -> str:
    """Output of the environment's Python, whatever its exit."""
    command = [str(prefix / "bin" / "python"), "-B", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=prefix.parent)
    return done.stdout + done.stderr


def build_of(prefix: Path, name: str) -> str:
    """Version and build of an installed package."""
    record = next(item for item in records(prefix) if item["name"] == name)
    return f"{record['version']} {record['build']}"


def test_an_environment_of_the_old_channels_works_in_its_own_place(old: Room) -> None:
    prefix = old.by_rattler("env", ["python=3.11", "pytorch=2.4", "torchvision", "pytorch-cuda=12.1", "pip"])
    assert build_of(prefix, "pytorch") == "2.4.1 py3.11_cuda12.1_cudnn8.9.2_0"
    loaded = ask(prefix, "-c", "print(*{line.split()[-1] for line in open('/proc/self/maps') if '.so' in line})")
    assert [path for path in loaded.split() if "libpython" in path or "lib-dynload" in path]
    assert all(str(prefix) in path for path in loaded.split() if "python" in path)
    paths = ask(prefix, "-c", "import sysconfig; print(sysconfig.get_config_var('LIBDIR'))")
    assert paths.strip() == str(prefix / "lib")
    assert ask(prefix, "-m", "pip", "check") == "No broken requirements found.\n"
    assert "pip 2" in subprocess.check_output([prefix / "bin" / "pip", "--version"], text=True)
    assert scan(prefix) == []
    assert misowned(prefix) == []


def test_a_torchvision_of_another_torch_breaks_what_uses_its_operators(old: Room) -> None:
    prefix = old.by_rattler("env", ["python=3.11", "pytorch=2.5", "torchvision", "cpuonly"])
    assert build_of(prefix, "torchvision") == "0.20.1 py311_cpu"
    assert "pass    torchvision-nms" in ask(prefix, str(DRIVER), "--human", "--checks", "torchvision-nms")
    old.force(prefix, "torchvision=0.18.1=py311_cpu")
    assert "fail    torchvision-nms" in ask(prefix, str(DRIVER), "--human", "--checks", "torchvision-nms")


@pytest.mark.parametrize(("cuda", "build"), [("12.6", "cuda126"), ("", "cpu_generic")])
def test_conda_forge_gives_what_the_host_can_use(local: Channels, tmp_path: Path, cuda: str, build: str) -> None:
    room = make_room(tmp_path / "room", [local.forge], cuda=cuda)
    prefix = room.by_rattler("env", ["python=3.11", "pytorch=2.5", "torchvision"])
    assert build_of(prefix, "pytorch").startswith(f"2.5.1 {build}_py311")
    assert build_of(prefix, "libtorch").startswith(f"2.5.1 {build}_h")
    assert (
        prefix / "lib/python3.11/site-packages/torch/lib/libtorch_cpu.so"
    ).resolve() == prefix / "lib/libtorch_cpu.so"


def test_a_host_without_a_driver_gets_no_build_for_cuda(local: Channels, tmp_path: Path) -> None:
    room = make_room(tmp_path / "room", [local.forge], cuda="")
    with pytest.raises(AssertionError, match="__cuda"):
        room.by_rattler("env", ["python=3.11", "pytorch-gpu"])


def test_every_damage_is_seen_in_the_files(old: Room, tmp_path: Path) -> None:
    prefix = old.by_rattler("env", ["python=3.11", "pytorch=2.5", "torchvision", "cpuonly", "filelock", "pip"])
    damage.edit_in_place(prefix, "filelock", "filelock/__init__.py")
    damage.delete(prefix, "sympy", "sympy/__init__.py")
    found = scan(prefix)
    assert found == [
        "filelock: lib/python3.11/site-packages/filelock/__init__.py has other content than recorded",
        "sympy: lib/python3.11/site-packages/sympy/__init__.py is missing",
    ]
    ghost = damage.duplicate_metadata(prefix, "jinja2", "3.0.0")
    assert any("jinja2-3.0.0" in line for line in misowned(prefix))
    assert ghost.exists()
    damage.pip_over_conda(old, prefix, [miniature.torchvision_wheel(tmp_path, "0.19.1")], beside=True)
    assert any(line.startswith("torchvision: ") and "0.19.1" in line for line in misowned(prefix))
    assert any(line.startswith("torchvision: ") and "version.py" in line for line in scan(prefix))
