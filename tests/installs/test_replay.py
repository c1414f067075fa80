"""Installs that break a working environment, as they are reported, each warned of before or undone to the byte; and ordinary ones."""

from __future__ import annotations

import pytest

from tests.installs.conftest import Place

pytestmark = pytest.mark.long

WARNED, CHECKED, FAILED, DONE = "warned of", "stopped by the checks", "failed in its own words", "done, and undone"
CPU, BROKEN = "--index-url={cpu}", "--index-url={broken}"
REPLAY = (
    ("torch swapped for its CPU build", WARNED, "pip install --force-reinstall torch==2.5.1+cpu " + CPU),
    ("torch moved away from torchvision", WARNED, "pip install -U torch"),
    ("torch moved away from torchvision, by uv", WARNED, "uv pip install torch==2.6.0"),
    ("torchvision for another torch, without dependencies", WARNED, "pip install --no-deps -U torchvision"),
    ("a package that takes torch along, away from kernels", CHECKED, "pip install vision-zoo"),
    ("numpy 2 under what was compiled for numpy 1", CHECKED, "pip install -U numpy"),
    ("numpy 2 under what was compiled for numpy 1, by uv", CHECKED, "uv pip install -U numpy"),
    ("a package that takes numpy 2 along", CHECKED, "pip install greedy"),
    ("numpy uninstalled", WARNED, "pip uninstall -y numpy"),
    (
        "numpy from an index of broken builds",
        CHECKED,
        "pip install --force-reinstall --no-deps numpy==1.26.4 " + BROKEN,
    ),
    ("opencv twice", CHECKED, "pip install opencv-python-headless"),
    ("opencv twice, by uv", CHECKED, "uv pip install opencv-python-headless"),
    ("one half of cuda-python upgraded", WARNED, "pip install cuda-bindings==13.0.0"),
    ("one half of cuda-python upgraded, by uv", WARNED, "uv pip install -U cuda-bindings"),
    ("flash-attn built for another torch", DONE, "pip install flash-attn"),
    ("flash-attn built from source without torch", FAILED, "pip install --no-build-isolation flash-attn-src"),
    ("tokenizers that transformers refuses", WARNED, "pip install -U tokenizers"),
    ("protobuf 5 under generated code of 4", CHECKED, "pip install -U protobuf"),
    ("urllib3 that requests refuses", WARNED, "pip install urllib3==3.0.0"),
    ("pydantic 2 under what needs 1", CHECKED, "pip install pydantic==2.7.0"),
    ("a package of another's name over it", CHECKED, "pip install shadow"),
    ("a namespace closed by a newcomer", DONE, "uv pip install namespace-c"),
    ("a helper uninstalled that nobody states", CHECKED, "pip uninstall -y setuptools-ext"),
    ("a downgrade on the way to something else", WARNED, "pip install downgrader"),
    ("a requirement that no release meets", FAILED, "pip install old-hub"),
    ("pins that contradict each other", FAILED, "pip install torch==2.6.0 torchvision==0.20.1"),
    ("a name that nobody has", FAILED, "pip install numppy"),
)


@pytest.mark.parametrize(("how", "line"), [row[1:] for row in REPLAY], ids=[row[0] for row in REPLAY])
def test_what_breaks_an_environment_is_warned_of_or_undone(place: Place, how: str, line: str) -> None:
    root = place.wheels.parent
    before = place.state()
    words = line.format(cpu=(root / "cpu" / "simple").as_uri(), broken=(root / "broken" / "simple").as_uri()).split()
    done = place.run(*words)
    told = {1: FAILED if "exited with status" in done.out else WARNED, 4: CHECKED, 0: DONE}
    assert told[done.code] == how, done.told()
    if how == DONE:
        assert place.state() != before
        assert place.run("undo", "--yes").code == 0
    assert place.state() == before


def test_flash_attn_for_another_torch_is_told_although_nothing_else_is_worse(place: Place) -> None:
    done = place.run("pip", "install", "flash-attn")
    assert "It is installed, and `import flash_attn` fails: undefined symbol" in done.out.replace(
        "ImportError: ", ""
    ), done.told()


ORDINARY = (
    "pip install tool-a",
    "pip install six",
    "pip install --upgrade six",
    "uv pip install lazy",
    "uv pip install -U lazy tool-b",
    "pip install -U transformers",
    "pip install -U scipy",
    "pip install -U cuda-python",
    "uv pip install urllib3==2.2.0",
    "pip install typing-ext==4.12.0",
    "pip install --force-reinstall --no-deps pillow",
    "uv pip install --reinstall tokenizers",
    "pip install namespace-b",
    "pip uninstall -y tool-a",
    "uv pip uninstall tool-b",
    "pip install -r {requirements}",
    "uv pip install -r {requirements}",
    "pip install {wheels}/tool_b-1.0-py3-none-any.whl",
    "pip install --no-index --find-links {wheels} tool-a==1.0",
    "pip install torch==2.5.1 torchvision==0.20.1",
    "pip uninstall -y pillow",
    "pip install --no-cache-dir 'pillow>=9,<11'",
    "python -m pip install -q --disable-pip-version-check tool-b",
    "pip3 install --upgrade --upgrade-strategy only-if-needed lazy",
)


def test_ordinary_installs_are_not_stopped(place: Place, tmp_path_factory: pytest.TempPathFactory) -> None:
    requirements = tmp_path_factory.mktemp("ordinary") / "requirements.txt"
    requirements.write_text("tool-a\nlazy>=1\nsix~=1.16\n")
    stopped = []
    for line in ORDINARY:
        words = line.replace("'", "").format(requirements=requirements, wheels=place.wheels).split()
        done = place.run(*words)
        if done.code:
            stopped.append((line, done.told()))
    assert not stopped, "\n".join(f"{line}: {told}" for line, told in stopped)
    assert place.imports("torch, torchvision, scipy, transformers, fam_kernels, onnx, requests, spaced.a, spaced.b")
