"""The faults of this case arise by themselves, look like the real ones, and the right torchvision cures them."""

from __future__ import annotations

import json
import subprocess
from importlib.metadata import Distribution, PathDistribution
from pathlib import Path

import pytest

from tests.envs.nms_cuda.case import EDIT, Case, build
from tests.support.miniature import main
from tests.support.native_case import NativeCase, settled
from tests.support.venvs import install, site_packages
from tests.support.wheels import Wheel, make_wheel

HERE = Path(__file__).resolve().parent
DRIVER = HERE.parents[2] / "envmedic" / "kernels" / "driver.py"
CHECKS = "matmul,conv,torchvision-dispatch,torchvision-nms,torchvision-roi-align,import:torchvision"


@pytest.fixture(scope="module", params=["0.18.1", "0.19.1"])
def broken(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Case:
    """The environment, broken in each way."""
    return build(tmp_path_factory.mktemp("case"), torchvision=request.param)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Case:
    """The environment with the torchvision that belongs to its torch."""
    return build(tmp_path_factory.mktemp("sound"), torchvision="0.20.1")


def run(case: Case, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the environment's Python from elsewhere."""
    return subprocess.run(
        [case.python, "-B", *arguments], capture_output=True, text=True, check=False, cwd=case.prefix.parent
    )


def version(case: Case) -> str:
    """The installed torchvision."""
    return next(site_packages(case.prefix).glob("torchvision-*.dist-info")).name.split("-")[1].removesuffix(".dist")


def sample(name: str) -> list[str]:
    """Lines of what the real releases print."""
    return (HERE / name).read_text(encoding="utf-8").splitlines()


def outcomes(case: Case) -> dict[tuple[str, str], str]:
    """Check and device → status, by envmedic's own kernels."""
    done = run(case, str(DRIVER), "--human", "--checks", CHECKS)
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith(("pass", "fail", "crash", "timeout"))]
    assert lines, done.stdout + done.stderr
    return {(line[1], line[2]): line[0] for line in lines}


def test_the_program_ends_as_with_the_real_releases(broken: Case) -> None:
    real = {"0.18.1": "sample_operator_does_not_exist.log", "0.19.1": "sample_dets_must_be_cuda.log"}[version(broken)]
    done = run(broken, str(broken.program))
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == sample(real)[-1]


def test_what_does_not_need_torchvision_works_all_the_same(broken: Case) -> None:
    found = outcomes(broken)
    assert {found[name, "cpu"] for name in ("matmul-fp32", "matmul-bf16", "conv-fp32", "conv-bf16")} == {"pass"}
    assert {found[name, "cpu"] for name in ("torchvision-nms", "torchvision-roi-align")} == {"fail"}
    assert found["torchvision-dispatch", "-"] == "fail"
    imports = {"0.18.1": "fail", "0.19.1": "pass"}[version(broken)]
    assert found["import", "torchvision"] == imports


@pytest.mark.parametrize("torchvision", ["0.18.1", "0.19.1"])
def test_the_torchvision_that_belongs_to_it_cures_it(torchvision: str, tmp_path: Path) -> None:
    case = build(tmp_path, torchvision=torchvision)
    assert run(case, str(case.program)).returncode == 1
    install(
        case.prefix, [Wheel("torchvision", "0.20.1", case.wheels / "torchvision-0.20.1-py3-none-any.whl", "", 0, "")]
    )
    done = run(case, str(case.program))
    assert (done.returncode, done.stdout) == (0, "kept boxes: [0, 2]\n"), done.stderr


def test_every_check_passes_where_nothing_is_wrong(sound: Case) -> None:
    assert set(outcomes(sound).values()) == {"pass"}
    room = sound.prefix.parent
    settled(NativeCase(room=room, prefix=sound.prefix, program=sound.program, index=sound.index))


def test_the_environment_holds_what_a_repair_must_keep(sound: Case) -> None:
    assert sound.edited.read_text(encoding="utf-8").endswith(EDIT)
    script = sound.prefix / "bin" / "box-labels"
    assert script.read_text(encoding="utf-8").startswith(f"#!{sound.prefix}/bin/python")
    done = run(sound, "-c", "import detector; print(detector.__file__)")
    assert done.stdout.splitlines()[-1] == str(sound.program)
    direct = next(site_packages(sound.prefix).glob("detector-*.dist-info")) / "direct_url.json"
    assert json.loads(direct.read_text(encoding="utf-8"))["dir_info"] == {"editable": True}


def test_the_miniature_says_what_it_is(sound: Case) -> None:
    for name in ("torch", "torchvision", "numpy", "pillow"):
        (info,) = site_packages(sound.prefix).glob(f"{name}-*.dist-info")
        assert "miniature" in summary(PathDistribution(info))
    assert "miniature" in run(sound, "-c", "import torch; print(torch.__doc__)").stdout


def summary(distribution: Distribution) -> str:
    """The Summary of a distribution's metadata."""
    return str(distribution.metadata["Summary"])


def test_the_requirements_are_those_of_the_real_releases(sound: Case) -> None:
    (info,) = site_packages(sound.prefix).glob("torchvision-*.dist-info")
    assert PathDistribution(info).requires == ["numpy", "torch (==2.5.1)", "pillow (!=8.3.*,>=5.3.0)"]


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("sample_operator_does_not_exist.log", "RuntimeError: operator torchvision::nms does not exist"),
        ("sample_dets_must_be_cuda.log", "RuntimeError: dets must be a CUDA tensor"),
        ("sample_custom_ops.log", "RuntimeError: Couldn't load custom C++ ops. "),
    ],
)
def test_samples_are_whole_tracebacks_with_neutral_paths(name: str, line: str) -> None:
    lines = sample(name)
    assert "Traceback (most recent call last):" in lines
    assert lines[-1].startswith(line)
    paths = [item for item in lines if item.startswith('  File "')]
    assert all(item.startswith('  File "/home/user/') for item in paths)


def test_the_builder_prints_wheels_and_index(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(Path(line).is_file() for line in lines[:-1])
    assert lines[-1] == (tmp_path / "index" / "simple").as_uri()
    assert main([]) == 2


def test_a_made_wheel_is_the_same_every_time(tmp_path: Path) -> None:
    one, two = (make_wheel(tmp_path / part, "app", "1.0", requires=["x>=1"]) for part in "ab")
    assert one.sha256 == two.sha256
