"""Guard after a repair: what would undo it, with and without constraints that keep it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.support import REPAIR, Done, Shell, user_of
from tests.envs.nms_cuda.case import BROKEN, REPAIRED, TORCH, Case, build
from tests.support.venvs import install, make_venv, python_of, uv
from tests.support.wheels import make_wheel


@pytest.fixture(scope="module")
def repaired(tmp_path_factory: pytest.TempPathFactory) -> tuple[Case, Shell]:
    """A repaired environment whose constraints were written, and its user."""
    room = tmp_path_factory.mktemp("kept")
    case = build(room / "case")
    user = user_of(case, room / "home")
    done = user.envmedic(*REPAIR, "--pin", "--json", "-p", str(case.prefix))
    assert done.code == 0, done.told()
    steps = {step["type"] for step in done.document["plan"]["steps"]}
    assert {"pin", "set_env"} <= steps
    return case, user


def asked(repaired: tuple[Case, Shell], *words: str) -> Done:
    case, user = repaired
    return user.envmedic("guard", "--json", "-p", str(case.prefix), *words)


def kinds(done: Done) -> list[str]:
    return [item["kind"] for item in done.document["harms"]]


def test_the_constraints_hold_what_was_proven(repaired: tuple[Case, Shell]) -> None:
    case, _ = repaired
    lines = (case.prefix / "etc" / "envmedic" / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert lines == [f"torch=={TORCH}", f"torchvision=={REPAIRED}"]


def test_an_activated_shell_keeps_the_repair_and_guard_says_that_the_command_fails(
    repaired: tuple[Case, Shell], tmp_path: Path
) -> None:
    case, user = repaired
    done = asked(repaired, f"uv pip install --no-deps torchvision=={BROKEN} --default-index {case.index}")
    assert (done.code, done.document["verdict"]) == (1, "fails"), done.told()
    script = (
        f". {case.prefix}/bin/activate; {uv()} pip install --no-deps torchvision=={BROKEN} --default-index {case.index}"
    )
    real = subprocess.run(["bash", "-c", script], env=user.environment(), capture_output=True, text=True, check=False)
    assert real.returncode != 0
    assert "unsatisfiable" in real.stderr
    del tmp_path


def test_what_takes_another_release_undoes_the_repair(repaired: tuple[Case, Shell]) -> None:
    done = asked(repaired, f"PIP_CONSTRAINT= pip install --no-deps torchvision=={BROKEN}")
    assert (done.code, done.document["verdict"]) == (1, "undoes-repair"), done.told()
    assert kinds(done)[:2] == ["undoes-repair", "constraint"]
    assert "torch-family" in kinds(done)
    assert done.document["transaction"] in done.document["harms"][0]["source"]


def test_removing_what_the_repair_rests_on_undoes_it(repaired: tuple[Case, Shell]) -> None:
    done = asked(repaired, "--", "pip", "uninstall", "-y", "torch")
    assert (done.code, done.document["verdict"]) == (1, "undoes-repair"), done.told()
    assert {"undoes-repair", "torch-family", "requirement"} <= set(kinds(done))


def test_what_is_beside_it_is_no_harm(repaired: tuple[Case, Shell]) -> None:
    assert asked(repaired, "pip install -U torchvision box-labels").code == 0
    done = asked(repaired, "pip uninstall -y box-labels")
    assert (done.code, done.document["verdict"]) == (0, "harmless"), done.told()


def test_people_read_the_answer_first(repaired: tuple[Case, Shell]) -> None:
    case, user = repaired
    done = user.envmedic("guard", "-p", str(case.prefix), "pip uninstall torch")
    assert done.out.startswith("undoes the repair  pip uninstall torch: ")
    assert "Nothing has been changed." in done.out


@pytest.mark.parametrize("words", [(), ("pip install x", "--", "pip", "install", "y")])
def test_one_command_is_asked_about(repaired: tuple[Case, Shell], words: tuple[str, ...]) -> None:
    done = asked(repaired, *words)
    assert (done.code, done.document["code"]) == (2, "input"), done.told()


def test_a_command_for_another_environment_is_refused(repaired: tuple[Case, Shell], tmp_path: Path) -> None:
    other = make_venv(tmp_path / "other")
    done = asked(repaired, f"uv pip install --python {other / 'bin' / 'python'} box-labels")
    assert (done.code, done.document["code"]) == (2, "input"), done.told()
    assert "other" in done.document["summary"]


def test_what_others_need_breaks_without_any_repair(repaired: tuple[Case, Shell], tmp_path: Path) -> None:
    _, user = repaired
    prefix = make_venv(tmp_path / "env")
    wheels = [make_wheel(tmp_path, "lower", "1.0"), make_wheel(tmp_path, "upper", "1.0", requires=["lower<2"])]
    make_wheel(tmp_path, "lower", "2.0")
    install(prefix, wheels)
    done = user.envmedic("guard", "--json", "-p", str(prefix), f"pip install --no-index -f {tmp_path} -U lower")
    assert (done.code, done.document["verdict"]) == (1, "breaks"), done.told()
    assert "upper 1.0" in done.document["summary"]


def test_a_later_repair_is_not_held_by_the_constraints_of_an_earlier_one(
    repaired: tuple[Case, Shell], tmp_path: Path
) -> None:
    case, user = repaired
    prefix = tmp_path / "env"
    shutil.copytree(case.prefix, prefix, symlinks=True)
    constraints = prefix / "etc" / "envmedic" / "constraints.txt"
    constraints.write_text(f"torchvision=={BROKEN}\nbox-labels<2\n", encoding="utf-8")
    python = str(python_of(prefix))
    argv = [uv(), "pip", "install", "-q", "--python", python, "--no-deps", f"torchvision=={BROKEN}", "--no-index"]
    subprocess.run([*argv, f"--find-links={case.wheels}"], check=True)
    active = user.having(PIP_CONSTRAINT=str(constraints), UV_CONSTRAINT=str(constraints))
    done = active.envmedic(*REPAIR, "--json", "-p", str(prefix))
    assert done.code == 0, done.told()
    assert constraints.read_text(encoding="utf-8").splitlines() == [f"torchvision=={REPAIRED}", "box-labels<2"]
    undone = active.envmedic("undo", "--yes", "--json", "-p", str(prefix))
    assert undone.code == 0, undone.told()
    assert constraints.read_text(encoding="utf-8").splitlines() == [f"torchvision=={BROKEN}", "box-labels<2"]
