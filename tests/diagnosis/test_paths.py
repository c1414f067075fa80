"""What the paths of a text say of its cause, and of where it was written."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from envmedic.diagnosis.findings import diagnose
from envmedic.model.facts import Environment, Facts, TextStatement
from envmedic.model.findings import Diagnosis
from envmedic.playbook.matching.match import read_text
from envmedic.render.documents.diagnosis import diagnosis_lines
from tests.diagnosis.helpers import environment, facts
from tests.diagnosis.test_noise import judged, playbooks
from tests.playbook.test_named_paths import HOME, UNDEFINED, VENV, traceback


def examined(text: str, known: Facts) -> Diagnosis:
    return diagnose(read_text(text.encode().split(b"\n"), playbooks()), known, playbooks(), prefix="/env", log="log")


def first(text: str) -> tuple[str | None, str | None]:
    found = judged(text).findings
    return (found[0].playbook, found[0].signature) if found else (None, None)


def test_a_torch_of_the_home_directory_below_packages_of_an_environment_is_the_root() -> None:
    mixed = traceback(UNDEFINED, f"{VENV}/boxes/__init__.py", f"{HOME}/torch/__init__.py")
    assert first(mixed) == ("shadowed-user-site", "two-owners")
    found = judged(mixed).findings[0]
    assert found.summary == "torch is imported from the home directory by packages of /opt/venv"
    assert found.evidence[0].where == "log:6"
    alone = traceback(UNDEFINED, f"{VENV}/boxes/__init__.py", f"{VENV}/torch/__init__.py")
    assert first(alone)[0] != "shadowed-user-site"


@pytest.mark.parametrize(
    "error", ["torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", "KeyError: 'labels'",
              "ModuleNotFoundError: No module named 'einops'"],
)  # fmt: skip
def test_owners_explain_errors_of_loading_alone(error: str) -> None:
    found = judged(traceback(error, f"{VENV}/boxes/__init__.py", f"{HOME}/torch/__init__.py"))
    assert not any(item.fault == "duplicate-install" and item.confidence >= 0.5 for item in found.findings)


def test_two_torches_in_one_text() -> None:
    text = traceback(UNDEFINED, f"{VENV}/torch/__init__.py", "/usr/lib/python3/dist-packages/torch/_ops.py")
    assert first(text) == ("duplicate-install", "two-copies")
    other = traceback(UNDEFINED, f"{VENV}/boxes/__init__.py", "/opt/old/lib/python3.11/site-packages/torch/_ops.py")
    assert first(other) == ("shadowed-pythonpath", "two-environments")


def test_an_own_file_that_hides_a_module_is_no_fault_of_an_environment() -> None:
    error = "AttributeError: partially initialized module 'torch' has no attribute 'Tensor' (most likely due to a circular import)"
    found = judged(traceback(error, "/home/user/torch.py"))
    assert found.verdict == "not-an-env-problem"
    assert found.reason == "/home/user/torch.py is imported in place of torch: rename it, and remove its __pycache__"


@pytest.mark.parametrize(
    ("library", "error"),
    [("datasets", "module 'datasets' has no attribute 'load_dataset'"), ("pyarrow", "module 'pyarrow' has no attribute 'table'")],
)  # fmt: skip
@pytest.mark.parametrize("form", [str, lambda text: json.dumps({"error": text})], ids=["alone", "JSON"])
def test_an_own_file_goes_before_a_less_sure_reading_of_its_error(
    library: str, error: str, form: Callable[[str], str]
) -> None:
    text = traceback(f"AttributeError: {error}", "/home/user/train.py", f"/home/user/{library}.py")
    found = judged(form(text))
    assert (found.verdict, found.findings) == ("not-an-env-problem", ())
    assert (
        found.reason
        == f"/home/user/{library}.py is imported in place of {library}: rename it, and remove its __pycache__"
    )


def test_a_source_tree_that_hides_the_installed_package() -> None:
    error = "ModuleNotFoundError: No module named 'boxes._C'"
    text = traceback(error, "/home/user/repo/boxes/__init__.py")
    assert first(text) == ("extension-not-built", "source-tree")
    has = TextStatement(module="boxes._C", holds=False, told="boxes/_C.abi3.so is there")
    found = examined(text, replace(facts(environment()), statements=(has,)))
    assert found.verdict == "not-an-env-problem"
    assert (
        found.reason == "boxes._C is in this environment: the source tree in /home/user/repo hides the installed boxes"
    )
    assert any("Start the program from another directory than /home/user/repo" in text for text in found.advice)


def test_the_torch_of_a_build_environment_is_not_that_of_the_environment() -> None:
    build = "/tmp/pip-build-env-k2lq1x4e/overlay/lib/python3.11/site-packages/torch/utils/cpp_extension.py"
    error = (
        "RuntimeError:\nThe detected CUDA version (12.4) mismatches the version that was used to compile\n"
        "PyTorch (13.0). Please make sure to use the same CUDA versions."
    )
    found = judged(traceback(error, build)).findings
    assert {item.playbook for item in found if item.confidence > 0.9} == {"cuda-toolkit-mismatch", "build-isolation"}


@pytest.mark.parametrize("prefix", ["/opt/venv", "/env", "/real"])
def test_a_text_of_another_environment_than_the_one_examined(prefix: str) -> None:
    observed: Environment = replace(environment(), real_prefix="/real")
    text = traceback("ImportError: oops", f"{prefix}/lib/python3.11/site-packages/a/__init__.py")
    sentence = f"the error was raised in {prefix}, and /env was examined: -p names another one"
    told = (sentence,) if prefix == "/opt/venv" else ()
    found = examined(text, facts(observed))
    assert found.origin == told
    assert (f"  {sentence}" in ["".join(piece.text for piece in line) for line in diagnosis_lines(found)]) == bool(told)
    assert judged(text).origin == ()


def test_repairs_are_for_linux() -> None:
    found = judged(traceback("ImportError: oops", r"D:\sd\venv\Lib\site-packages\a\__init__.py"))
    assert found.origin == (
        r"D:\sd\venv\Lib\site-packages\a\__init__.py is a path of Windows, and envmedic repairs environments on Linux, WSL among them",
    )


@pytest.mark.parametrize(
    "error", ["TypeError: compare() got an unexpected keyword argument 'mode'", "AttributeError: 'Plan' object has no attribute 'parts'"]
)  # fmt: skip
def test_two_packages_that_disagree_are_named_where_nothing_else_is_known(error: str) -> None:
    found = judged(traceback(error, "train.py", f"{VENV}/quux/a.py", f"{VENV}/frob/b.py", within="fold"))
    assert [(item.signature, item.confidence) for item in found.findings] == [("two-packages", 0.35)]
    assert found.findings[0].summary.startswith("quux calls frob in a way that frob does not know")
    assert found.verdict == "unknown"
    # who refused a call is in no frame: the program may have handed on what the library then called with
    alone = [("refused-call", 0.3) if error.startswith("TypeError") else ("error-inside-attribute", 0.34)]
    torch = f"{VENV}/torch/nn/modules/module.py"
    for frames in (
        (f"{VENV}/quux/a.py", "train.py", f"{VENV}/frob/b.py"),
        (f"{VENV}/quux/a.py", torch, f"{VENV}/quux/b.py"),
    ):
        one = judged(traceback(error, *frames, within="fold"))
        assert [(item.signature, item.confidence) for item in one.findings] == alone
        assert one.verdict == "unknown"


def test_a_home_directory_is_one_place_written_short_or_in_full() -> None:
    text = (
        "~/tools/conda/lib/python3.10/site-packages/boxes/ops.py in <module>\n"
        "----> 1 import boxes_cuda\n\n"
        "ImportError: /root/tools/conda/lib/python3.10/site-packages/boxes_cuda.cpython-310-x86_64-linux-gnu.so: "
        "undefined symbol: _ZN3c105ErrorC2ENS_14SourceLocationESs"
    )
    assert judged(text).findings[0].fault == "extension-undefined-symbol"
    other = text.replace("/root/tools/conda/", "/root/old/conda/")
    assert first(other) == ("shadowed-pythonpath", "two-environments")


@pytest.mark.parametrize(
    "error", ["IndexError: list index out of range", "TypeError: object of type 'int' has no len()"]
)
def test_an_error_of_the_own_code_is_no_fault_of_an_environment(error: str) -> None:
    loader = f"{VENV}/torch/utils/data/dataloader.py"
    assert judged(traceback(error, loader, "/home/me/train/batches.py")).verdict == "not-an-env-problem"
    assert judged(traceback(error, "/home/me/train/batches.py", loader, within="fold")).verdict == "unknown"
    assert judged(traceback(error, "/usr/lib/python3.11/queue.py")).verdict == "unknown"


def test_an_old_driver_is_of_the_host_where_nothing_in_an_environment_helps() -> None:
    condition = "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.4, please update your driver"
    assert judged(condition).verdict == "host"
    library = "ImportError: libcuda.so.1: cannot open shared object file: No such file or directory"
    assert judged(library).verdict == "host"
    torch = "RuntimeError: The NVIDIA driver on your system is too old (found version 11040)."
    assert judged(torch).verdict == "env"
    assert "older CUDA release" in judged(torch).findings[0].summary
