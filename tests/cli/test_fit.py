"""``envmedic check -r``: files judged for machines that are described, and the hooks that call it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from envmedic.playbook.schema.document import read_document
from tests.cli.support import ENVMEDIC, Done, Shell
from tests.envs.nms_cuda.case import BROKEN, TORCH, Case

ROOT = Path(__file__).resolve().parents[2]
HASH = "--hash=sha256:" + "0" * 64
BLACKWELL = ("--gpu", "sm_120", "--driver", "570", "--python", "3.12")
HOPPER = ("--gpu", "9.0", "--driver", "550", "--python", "3.12")
TIGHT = f"torch==2.6.0 {HASH}\n# a comment\ntorchvision==0.21.0 \\\n    {HASH}\n"


def judged(reader: Shell, *words: str) -> tuple[Done, dict[str, Any]]:
    done = reader.envmedic("check", *words, "--json")
    return done, done.document["fits"][0]


def test_one_lock_fits_one_gpu_and_not_another(reader: Shell, tmp_path: Path) -> None:
    file = tmp_path / "requirements.txt"
    file.write_text(TIGHT)
    done, fit = judged(reader, "-r", str(file), *HOPPER)
    assert (done.code, fit["verdict"], fit["packages"], fit["misfits"]) == (0, "fits", 2, [])
    done, fit = judged(reader, "-r", str(file), *BLACKWELL)
    assert (done.code, fit["verdict"], fit["capabilities"]) == (1, "does-not-fit", ["12.0"])
    assert {(item["rule"], item["package"], item["line"]) for item in fit["misfits"]} == {
        ("gpu-coverage", "torch", 1), ("nvrtc-coverage", "torch", 1),
    }  # fmt: skip
    text = reader.envmedic("check", "-r", str(file), *BLACKWELL).out
    assert text.startswith(f"no  {file}: torch 2.6.0 (cu124) has no code for compute capability 12.0")
    assert f"{file}:1  " in text


@pytest.mark.parametrize(
    ("torch", "words", "rule"),
    [
        ("2.6.0", ("--driver", "470", "--gpu", "sm_80", "--python", "3.12"), "driver-minimum"),
        ("2.6.0", ("--driver", "570", "--gpu", "sm_80", "--python", "3.14"), "python-wheel"),
        ("2.6.0+cpu", ("--driver", "570", "--gpu", "sm_80", "--python", "3.12"), "gpu-required"),
    ],
)
def test_what_speaks_against_it(reader: Shell, tmp_path: Path, torch: str, words: tuple[str, ...], rule: str) -> None:
    file = tmp_path / "requirements.txt"
    file.write_text(f"torch=={torch} {HASH}\n")
    done, fit = judged(reader, "-r", str(file), *words)
    assert done.code == 1
    assert rule in {item["rule"] for item in fit["misfits"] if item["severity"] == "error"}


def test_companions_are_held_against_torch_at_their_line(reader: Shell, tmp_path: Path) -> None:
    file = tmp_path / "requirements.txt"
    file.write_text(f"torch==2.5.1 {HASH}\n\ntorchvision==0.18.1 {HASH}\n")
    _, fit = judged(reader, "-r", str(file), *HOPPER)
    (misfit,) = fit["misfits"]
    assert (misfit["rule"], misfit["line"]) == ("torchvision-pair", 3)
    assert misfit["text"].endswith("torch 2.5.1 is named beside it")


def test_requirements_without_versions_are_resolved_for_that_python(
    reader: Shell, shared: Case, tmp_path: Path
) -> None:
    file = tmp_path / "requirements.txt"
    file.write_text(f"numpy\ntorchvision=={BROKEN}\ntorch=={TORCH}\n")
    python = "{}.{}".format(*sys.version_info)
    done, fit = judged(reader.having(**shared.index_variables()), "-r", str(file), "--python", python)
    assert (done.code, fit["misfits"][0]["rule"]) == (1, "resolution")
    assert "torchvision" in fit["summary"]


def test_a_pylock_names_its_wheels(reader: Shell, tmp_path: Path) -> None:
    file = tmp_path / "pylock.toml"
    file.write_text(
        'lock-version = "1.0"\ncreated-by = "somebody"\n\n[[packages]]\nname = "lxml"\nversion = "5.3.0"\n'
        "wheels = [{ url = 'https://example.org/lxml-5.3.0-cp311-cp311-manylinux_2_28_x86_64.whl' }]\n\n"
        "[[packages]]\nname = 'colorama'\nversion = '0.4.6'\nmarker = \"sys_platform == 'win32'\"\n"
        "wheels = [{ url = 'https://example.org/colorama-0.4.6-cp27-none-win32.whl' }]\n"
    )
    done, fit = judged(reader, "-r", str(file), "--python", "3.11")
    assert (done.code, fit["packages"]) == (0, 1)
    done, fit = judged(reader, "-r", str(file), "--python", "3.12")
    assert (done.code, fit["misfits"][0]["rule"], fit["misfits"][0]["line"]) == (1, "wheel-tag", 5)


def test_an_environment_yml_is_judged_by_its_builds(reader: Shell, tmp_path: Path) -> None:
    file = tmp_path / "environment.yml"
    build = "pytorch=2.4.1=py3.11_cuda12.1_cudnn9.1.0_0"
    file.write_text(
        f"name: x\ndependencies:\n  - python=3.11\n  - {build}\n  - scipy\n  - pip:\n      - einops==0.8.0\n"
    )
    done, fit = judged(reader, "-r", str(file), "--gpu", "sm_120", "--driver", "550")
    assert (done.code, fit["python"], fit["misfits"][0]["line"]) == (1, "3.11", 4)
    done, fit = judged(reader, "-r", str(file), "--gpu", "sm_90", "--driver", "550")
    assert (done.code, fit["verdict"]) == (1, "unknown")
    assert fit["unjudged"] == ["scipy: it names no exact version"]


def test_misfits_are_written_for_code_scanning(reader: Shell, tmp_path: Path) -> None:
    file, report = tmp_path / "requirements.txt", tmp_path / "out.sarif"
    file.write_text(TIGHT)
    reader.envmedic("check", "-r", str(file), *BLACKWELL, "--sarif", str(report))
    run = json.loads(report.read_text())["runs"][0]
    assert {rule["id"] for rule in run["tool"]["driver"]["rules"]} == {"gpu-coverage", "nvrtc-coverage"}
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert (place["artifactLocation"]["uri"], place["region"]["startLine"]) == (str(file), 1)


@pytest.mark.parametrize(
    "words", [(), ("torch", "--gpu", "sm_90"), ("-r", "none.txt"), ("-r", "none.txt", "--python", "/usr/bin/python3")]
)
def test_what_cannot_be_asked_is_refused(reader: Shell, words: tuple[str, ...]) -> None:
    done = reader.envmedic("check", *words)
    assert (done.code, done.out) == (2, "")
    assert "The environment is unchanged" in done.err


def test_the_hook_of_pre_commit_is_understood(reader: Shell, tmp_path: Path) -> None:
    document, mistakes = read_document((ROOT / ".pre-commit-hooks.yaml").read_bytes())
    assert not mistakes
    assert document is not None
    assert isinstance(document.plain, list)
    (hook,) = document.plain
    assert isinstance(hook, dict)
    file, other = tmp_path / "requirements.txt", tmp_path / "requirements-dev.txt"
    file.write_text(TIGHT)
    other.write_text(f"einops==0.8.0 {HASH}\n")
    words = [*str(hook["entry"]).split()[1:], *HOPPER, *hook["args"], str(file), str(other)]  # type: ignore[misc]
    done = reader.envmedic(*words, "--json")
    assert [item["verdict"] for item in done.document["fits"]] == ["fits", "fits"]


def test_the_action_passes_its_inputs_on_as_words(reader: Shell, tmp_path: Path) -> None:
    document, _ = read_document((ROOT / "action.yml").read_bytes())
    assert document is not None
    script = document.plain["runs"]["steps"][1]["run"]  # type: ignore[index,call-overload]
    (tmp_path / "envmedic" / "bin").mkdir(parents=True)
    program = tmp_path / "envmedic" / "bin" / "envmedic"
    program.write_text(f'#!/bin/sh\nexec {" ".join(ENVMEDIC)} "$@"\n')
    program.chmod(0o755)
    file = tmp_path / "requirements.txt"
    file.write_text(TIGHT)
    inputs = {"FILES": str(file), "GPU": "sm_90 sm_120", "DRIVER": "$(touch owned)", "PYTHON": "3.12", "SARIF": ""}
    variables = {**reader.environment(), "RUNNER_TEMP": str(tmp_path), **inputs}
    done = subprocess.run(
        ["bash", "-e", "-c", str(script)], env=variables, cwd=tmp_path, capture_output=True, check=False
    )
    assert (done.returncode, (tmp_path / "owned").exists()) == (1, False)
    assert b"has no code for compute capability 12.0" in done.stdout
