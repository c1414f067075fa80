"""What confirms a text, what refutes it, and what leaves it open."""

from __future__ import annotations

from functools import cache

import msgspec
import pytest

from envmedic.analysis.text_statements import Asked, asked, asked_by_extras, of_requirement
from envmedic.diagnosis.consequences import below_roots
from envmedic.diagnosis.findings import diagnose
from envmedic.model.facts import (
    Building,
    Defect,
    DistributionFiles,
    Environment,
    Facts,
    GeneratedModule,
    Gpu,
    Host,
    TextStatement,
    TorchBuild,
)
from envmedic.model.findings import Diagnosis, Evidence, Finding
from envmedic.model.playbook import LoadedPlaybook
from envmedic.model.registries.faults import Fault
from envmedic.playbook.matching.match import read_text
from envmedic.playbook.schema import loader
from tests.diagnosis.helpers import HOST, distribution, environment

NO_NAME = (
    "ImportError: cannot import name 'HybridCache' from 'transformers' (/env/x/site-packages/transformers/__init__.py)"
)
TOO_OLD = "Disabling PyTorch because PyTorch >= 2.6 is required but found 2.5.1"
DESCRIPTORS = "TypeError: Descriptors cannot be created directly."


@cache
def shipped(*names: str) -> tuple[LoadedPlaybook, ...]:
    return tuple(loader.load_file(loader.shipped_directory() / f"{name}.yaml", "shipped") for name in names)


def judged(text: str, playbook: str, facts: Facts, *, here: bool = False) -> Diagnosis:
    playbooks = shipped(playbook)
    return diagnose(
        read_text(text.encode().split(b"\n"), playbooks), facts, playbooks, prefix="/env", log="log", here=here
    )


def first(text: str, playbook: str, facts: Facts) -> Finding:
    return judged(text, playbook, facts).findings[0]


def installed(
    *pins: str, torch: str | None = None, generated: tuple[GeneratedModule, ...] | None = None
) -> Environment:
    found = [distribution(*pin.split("==")) for pin in pins]
    build = TorchBuild(version=torch, cuda=None) if torch else None
    return msgspec.structs.replace(environment(), distributions=tuple(found), torch=build, generated=generated)


@pytest.mark.parametrize(
    ("text", "playbook"),
    [
        (NO_NAME, "transformers-family"),
        (DESCRIPTORS, "protobuf-version"),
        ("RuntimeError: jaxlib version 0.4.30 is newer than and incompatible with jax version 0.4.26.", "unmet-requirement"),
        ("ImportError: cannot import name 'AttrsDescriptor' from 'triton.compiler'", "triton-version"),
        ("ImportError: cannot import name 'x' from 'torchmetrics.utilities.data'", "torch-companions"),
        ("WARNING[XFORMERS]: xFormers can't load C++/CUDA extensions.", "xformers-build"),
    ],
)  # fmt: skip
def test_metadata_without_a_conflict_refute_no_text(text: str, playbook: str) -> None:
    found = judged(text, playbook, Facts(host=HOST, environment=installed("transformers==4.44.2", "protobuf==5.29.1")))
    assert (found.verdict, found.findings[0].confirmed) == ("env", None)


CUDA_WANTED = "AssertionError: Torch not compiled with CUDA enabled"


def test_this_host_refutes_no_text_of_another() -> None:
    cpu = environment(torch="2.5.1+cpu", torchvision=None)
    login = Facts(host=Host(), environment=cpu)
    finding = first(CUDA_WANTED, "cpu-only-torch", login)
    assert finding.confirmed is None
    assert [item.what for item in finding.evidence if not item.supports] == [
        "number of visible GPUs: 0 on this host; the text may be of another"
    ]
    assert judged(CUDA_WANTED, "cpu-only-torch", login, here=True).findings[0].confirmed is False
    # the files of the environment are the same on every host
    cuda = Facts(host=Host(), environment=environment(torchvision=None))
    assert first(CUDA_WANTED, "cpu-only-torch", cuda).confirmed is False


def test_files_confirm_or_refute_what_a_text_states() -> None:
    facts = Facts(host=HOST, environment=installed("transformers==4.44.2"))

    def stated(*, holds: bool | None) -> Facts:
        item = TextStatement(module="transformers", name="HybridCache", holds=holds, told="as the files say")
        return msgspec.structs.replace(facts, statements=(item,))

    lacks = first(NO_NAME, "transformers-family", stated(holds=True))
    assert (lacks.confirmed, lacks.confidence > 0.95) == (True, True)
    has = judged(NO_NAME, "transformers-family", stated(holds=False))
    assert (has.verdict, has.findings[0].confirmed) == ("unknown", False)
    assert "as the files say" in (has.reason or "")
    assert first(NO_NAME, "transformers-family", stated(holds=None)).confirmed is None


def test_a_conflict_elsewhere_does_not_confirm_a_text_that_files_refute() -> None:
    conflict = distribution("transformers", "4.44.2", "tokenizers<0.20")
    broken = msgspec.structs.replace(installed(), distributions=(conflict, distribution("tokenizers", "0.21.0")))
    item = TextStatement(module="transformers", name="HybridCache", holds=False, told="4.44.2 has it")
    found = judged(NO_NAME, "transformers-family", Facts(host=HOST, environment=broken, statements=(item,)))
    assert [(one.signature, one.confirmed) for one in found.findings if not one.latent] == [
        (None, True),
        ("import-name", False),
    ]


def test_a_conflict_of_others_does_not_confirm_a_text() -> None:
    conflict = distribution("httpx", "0.28", "anyio<4")
    broken = msgspec.structs.replace(installed(), distributions=(conflict, distribution("anyio", "4.4")))
    facts = Facts(host=HOST, environment=broken)
    of_others = "ImportError: cannot import name 'soft_unicode' from 'markupsafe'"
    assert first(of_others, "unmet-requirement", facts).confirmed is None
    of_its_own = "ImportError: cannot import name 'BrokenResourceError' from 'httpx'"
    assert first(of_its_own, "unmet-requirement", facts).confirmed is True


@pytest.mark.parametrize(
    ("groups", "statement"),
    [
        ({"module": "transformers", "name": "HybridCache"}, Asked("transformers", "HybridCache")),
        ({"module": "ink", "part": "pens"}, Asked("ink.pens", None)),
        ({"requirement": "tokenizers >=0.20,<0.21"}, Asked(requirement="tokenizers<0.21,>=0.20")),
        ({"package": "PyTorch", "needed": "2.6"}, Asked(requirement="torch>=2.6")),
        ({"package": "numpy", "needed": "<2"}, Asked(requirement="numpy<2")),
        ({"caller": "a", "callee": "B.f", "argument": "lid"}, Asked(call="a B.f lid")),
        ({"caller": "a", "callee": "B.f"}, None),
        ({"requirement": "no requirement at all"}, None),
        ({"module": "a.b:c"}, None),
        ({}, None),
    ],
)
def test_a_statement_is_read_from_the_groups_of_a_match(groups: dict[str, str], statement: Asked | None) -> None:
    assert asked(groups) == statement


def test_the_torch_that_loads_is_the_one_that_is_compared() -> None:
    half_upgraded = installed("torch==2.6.0", torch="2.5.1")
    found = of_requirement(half_upgraded, "torch>=2.6")
    assert (found.holds, found.told) == (True, "torch 2.5.1 is installed, which torch>=2.6 refuses")
    assert of_requirement(installed("torch==2.6.0"), "torch>=2.6").holds is False
    assert of_requirement(installed(), "accelerate>=0.26").told == "accelerate is not installed"


def test_generated_code_shows_which_protobuf_it_needs() -> None:
    old = GeneratedModule(path="lib/site/board/graph_pb2.py", distribution="board", accepts="<4")
    facts = Facts(host=HOST, environment=installed("protobuf==5.29.1", "board==2.0", generated=(old,)))
    finding = first(DESCRIPTORS, "protobuf-version", facts)
    assert finding.confirmed is True
    assert any("graph_pb2.py was generated for protobuf<4, 5.29.1 is there" in item.what for item in finding.evidence)
    fits = Facts(host=HOST, environment=installed("protobuf==3.20.3", "board==2.0", generated=(old,)))
    assert first(DESCRIPTORS, "protobuf-version", fits).confirmed is None


def stated(text: str, facts: Facts, *, module: str, holds: bool) -> Diagnosis:
    """The diagnosis by all playbooks that a missing module concerns."""
    playbooks = shipped(
        "other-interpreter", "build-isolation", "build-requirements", "missing-requirement", "moved-environment"
    )
    item = TextStatement(module=module, holds=holds, told=f"of {module}")
    facts = msgspec.structs.replace(facts, statements=(item,))
    return diagnose(read_text(text.encode().split(b"\n"), playbooks), facts, playbooks, prefix="/env", log="log")


OTHER_PYTHONS = {
    "python -c": 'Traceback (most recent call last):\n  File "<string>", line 1, in <module>\n    import {0}\nModuleNotFoundError: '
    "No module named '{0}'",
    "python -m": "/usr/bin/python3: No module named {0}",
    "a script": "  File \"/home/user/train.py\", line 1, in <module>\n    import {0}\nModuleNotFoundError: No module named '{0}'",
    "torchrun": "/usr/bin/python3: Error while finding module specification for '{0}.run' (ModuleNotFoundError: No module "
    "named '{0}')",
}


@pytest.mark.parametrize("module", ["torch", "numpy", "yaml"])
@pytest.mark.parametrize("text", OTHER_PYTHONS.values(), ids=OTHER_PYTHONS.keys())
def test_a_module_that_is_here_was_missing_in_another_python(text: str, module: str) -> None:
    facts = Facts(host=HOST, environment=msgspec.structs.replace(environment(), files=()))
    found = stated(text.format(module), facts, module=module, holds=False)
    assert (found.verdict, found.findings) == ("not-an-env-problem", ())
    assert found.reason == f"{module} is in this environment: the program ran in another Python"
    assert "/env/bin/python" in found.advice[0]
    elsewhere = stated(text.format(module), facts, module=module, holds=True)
    assert elsewhere.verdict == "unknown"
    assert all(item.confirmed is not True for item in elsewhere.findings)


def test_activation_of_a_moved_environment_leads_to_another_python() -> None:
    moved = Defect(kind="moved", path="bin/activate", detail="was moved", names="/old/env", now="/env")
    facts = Facts(host=HOST, environment=msgspec.structs.replace(environment(), defects=(moved,), files=()))
    found = stated(OTHER_PYTHONS["python -c"].format("torch"), facts, module="torch", holds=False)
    assert found.verdict == "env"
    assert (found.findings[0].playbook, found.findings[0].confirmed) == ("moved-environment", True)


def test_a_build_that_misses_an_installed_module_is_a_build() -> None:
    text = "  ╰─▶ ModuleNotFoundError: No module named 'torch'       [end of output]"
    host = Host(variables=())
    facts = Facts(host=host, environment=msgspec.structs.replace(environment(), building=Building()))
    found = stated(text, facts, module="torch", holds=False)
    assert (found.verdict, found.findings[0].playbook, found.findings[0].confirmed) == ("env", "build-isolation", True)


NOISE = "Setting OMP_NUM_THREADS environment variable for each process to be 1 in default, to avoid your system being overloaded"


def quietly(text: str, facts: Facts | None) -> Diagnosis:
    playbooks = shipped("noise", "out-of-memory", "torch-companions")
    return diagnose(read_text(text.encode().split(b"\n"), playbooks), facts, playbooks, prefix="/env", log="log")


def test_a_healthy_environment_with_a_harmless_text_is_healthy() -> None:
    healthy = Facts(host=HOST, environment=environment())
    found = quietly(f"step 1\n{NOISE}\nstep 2", healthy)
    assert (found.verdict, found.findings) == ("healthy", ())
    assert (found.reason or "").startswith("the text tells of no failure")
    assert quietly(NOISE, None).verdict == "not-an-env-problem"
    wrong = msgspec.structs.replace(
        environment(), distributions=(distribution("torch", "2.5.1"), distribution("torchtext", "0.18", "torch>=2.6"))
    )
    assert quietly(NOISE, Facts(host=HOST, environment=wrong)).verdict != "healthy"


@pytest.mark.parametrize(
    "line",
    [
        "torch.cuda.OutOfMemoryError: CUDA out of memory.",
        "Killed",
        "NewError: something that no signature knows",
        "Process finished with exit code 1",
        "ld: не найден файл",
        "/usr/bin/ld: -lcuda nicht gefunden",
    ],
)
def test_a_line_of_a_failure_is_not_harmless(line: str) -> None:
    healthy = Facts(host=HOST, environment=environment())
    for text in (f"{NOISE}\n{line}", f"{line}\n{NOISE}"):
        assert quietly(text, healthy).verdict != "healthy"


def test_a_text_that_nothing_knows_is_not_healthy() -> None:
    assert quietly("it is slow", Facts(host=HOST, environment=environment())).verdict == "unknown"


def fault(name: Fault, *facts: str, confirmed: bool | None = True) -> Finding:
    evidence = tuple(Evidence(kind="fact", where="files.damaged", what=text) for text in facts)
    return Finding(
        fault=name,
        playbook=name,
        signature=None,
        confidence=0.85,
        confirmed=confirmed,
        summary=name,
        evidence=evidence,
        fix_kind="other",
    )


def folded(*findings: Finding) -> list[tuple[str, list[str]]]:
    names = ("torch", "nvidia-cublas", "pillow", "triton")
    found = below_roots(findings, installed(*(f"{name}==1.0" for name in names)))
    return [(item.fault, [below.fault for below in item.consequences]) for item in found]


def test_what_follows_from_a_root_is_shown_below_it() -> None:
    root = fault("half-installed", "nvidia-cublas 13.4: 1 of 15 files missing: lib/nvidia/cu13/lib/libcublas.so.13")
    lacking = fault("missing-cuda-library", "nvidia.lacking is lib/nvidia/cu13/lib/libcublas.so.13 is gone")
    assert folded(lacking, root) == [("half-installed", ["missing-cuda-library"])]
    # of another library, only suspected, or of a class that the root does not explain
    other = fault("missing-cuda-library", "nvidia.lacking is libcudart.so.11.0")
    assert len(folded(root, other)) == 2
    unsure = msgspec.structs.replace(lacking, confirmed=None)
    assert len(folded(root, unsure)) == 2
    assert len(folded(root, fault("numpy-abi", "libcublas.so.13"))) == 2


def test_another_reading_of_the_same_lines_that_no_fact_confirms_is_shown_below() -> None:
    def on(name: Fault, where: str, *, confirmed: bool | None) -> Finding:
        seen = Evidence(kind="text", where=where, what="RuntimeError: operator torchvision::nms does not exist")
        return msgspec.structs.replace(fault(name, ""), evidence=(seen,), confirmed=confirmed)

    operators = on("torchvision-ops", "log:16", confirmed=True)
    generic = on("companion-version", "log:16", confirmed=None)
    assert folded(operators, generic) == [("torchvision-ops", ["companion-version"])]
    # of another line, before it, confirmed itself, or beside one that is open too
    assert len(folded(operators, on("companion-version", "log:12", confirmed=None))) == 2
    assert len(folded(generic, operators)) == 2
    assert len(folded(operators, on("companion-version", "log:16", confirmed=True))) == 2
    assert len(folded(on("torchvision-ops", "log:16", confirmed=None), generic)) == 2


def test_a_torch_that_is_damaged_and_a_host_without_gpus_show_anywhere() -> None:
    torch = fault("half-installed", "torch 2.5.1: 1 of 12418 files missing: torch/lib/libc10.so")
    operators = fault("torchvision-ops", "torchvision.unresolved-symbols is 3")
    assert folded(torch, operators) == [("half-installed", ["torchvision-ops"])]
    host = fault("gpu-host-fault", "host.gpus-lost is GPU 0")
    assert folded(host, operators) == [("gpu-host-fault", ["torchvision-ops"])]


def test_a_finding_whose_facts_another_states_is_shown_below_it() -> None:
    unmet = "pillow 1.0 requires triton<1, 1.0 is there"
    root = fault("numpy-abi", f"{unmet}; torch 1.0 requires triton<1, 1.0 is there")
    assert folded(root, fault("companion-version", unmet)) == [("numpy-abi", ["companion-version"])]
    assert len(folded(fault("companion-version", unmet), root)) == 2, "the later one is no root of the earlier"
    assert len(folded(root, fault("companion-version", f"{unmet} too"))) == 2


def test_consequences_of_consequences_are_below_the_root() -> None:
    double = fault("duplicate-install", "env.duplicates is nvidia-cublas")
    wheels = fault("nvidia-wheel-conflict", "nvidia-cublas has libcublas.so.13 of another release")
    library = fault("missing-cuda-library", "libcublas.so.13")
    assert folded(double, wheels, library) == [("duplicate-install", ["nvidia-wheel-conflict", "missing-cuda-library"])]


def test_an_extra_that_asks_for_a_missing_module_confirms_it() -> None:
    asks = distribution("transformers", "4.44.2", 'accelerate>=0.26.0; extra == "torch"', 'PyYAML; extra == "yaml"')
    asks_on_windows = distribution("other", "1.0", 'accelerate; extra == "torch" and sys_platform == "win32"')
    here = msgspec.structs.replace(environment(), distributions=(asks, asks_on_windows))
    demands = asked_by_extras(here, HOST, {"module": "accelerate"})
    assert [(item.by.name, item.specifier, item.found) for item in demands] == [("transformers", ">=0.26.0", None)]
    assert [item.name for item in asked_by_extras(here, HOST, {"module": "yaml"})] == ["pyyaml"]
    assert asked_by_extras(here, HOST, {"module": "accelerate.utils"}) == ()
    assert asked_by_extras(here, HOST, {"module": "accelerate", "name": "x"}) == ()
    told = tuple(item.unmet().sentence() for item in demands)
    item = TextStatement(module="accelerate", holds=True, told="accelerate is not installed here", extras=told)
    text = "ModuleNotFoundError: No module named 'accelerate'"
    found = first(text, "missing-requirement", Facts(host=HOST, environment=here, statements=(item,)))
    assert found.confirmed is True
    no_extra = msgspec.structs.replace(item, extras=())
    assert (
        first(text, "missing-requirement", Facts(host=HOST, environment=here, statements=(no_extra,))).confirmed is None
    )


@pytest.mark.parametrize(
    ("text", "capability", "confirmed"),
    [
        ("RuntimeError: CUDA error: no kernel image is available for execution on the device", "9.0", False),
        ("RuntimeError: CUDA error: no kernel image is available for execution on the device", "12.0", True),
        ("RuntimeError: CUDA error: device kernel image is invalid", "8.9", False),
        ("GPU with CUDA capability sm_90 is not compatible with the current PyTorch installation.", "9.0", False),
        # of another host: what this one has says nothing of it
        ("GPU with CUDA capability sm_120 is not compatible with the current PyTorch installation.", "9.0", None),
        ("    Found GPU0 Tesla K40c which is of cuda capability 3.5.", "9.0", None),
    ],
)
def test_code_for_the_gpu_refutes_that_there_is_none(text: str, capability: str, confirmed: bool | None) -> None:  # noqa: FBT001  # a row of a table
    gpu = Gpu(index=0, name="NVIDIA H200", compute_capability=capability)
    host = Host(driver_version="580.95.05", driver_source="nvml", gpus=(gpu,))
    torch = TorchBuild(version="2.5.1", cuda="12.4", arch_list=("8.0", "8.6", "9.0"))
    facts = Facts(host=host, environment=msgspec.structs.replace(environment(), torch=torch))
    assert first(text, "no-kernel-image", facts).confirmed is confirmed


def test_a_module_whose_file_is_gone_is_missing_because_of_that() -> None:
    """A distribution that lists the file is no other release, whatever the text suggests."""
    gone = "lib/python3.12/site-packages/torchvision/ops/boxes.py"
    lost = DistributionFiles(
        distribution="torchvision",
        version="0.26.0",
        metadata_path="lib/python3.12/site-packages/torchvision-0.26.0.dist-info",
        recorded=198,
        matching=197,
        missing=(gone,),
        missing_count=1,
    )
    env = msgspec.structs.replace(installed("torchvision==0.26.0"), files=(lost,))
    root = fault("half-installed", f"torchvision 0.26.0: 1 of 198 files missing: {gone}")
    asks = fault("companion-version", "torchvision 0.26.0 has no module torchvision.ops.boxes")

    def roots(**groups: str) -> list[str]:
        return [item.fault for item in below_roots((msgspec.structs.replace(asks, groups=groups), root), env)]

    assert roots(module="torchvision", part="ops.boxes") == ["half-installed"]
    assert roots(module="torchvision.ops", name="boxes") == ["half-installed"]
    assert roots(module="torchvision.ops.boxes", name="nms") == ["half-installed"]
    assert roots(module="torchvision.io") == ["companion-version", "half-installed"]
    assert roots(module="vision.ops.boxes") == ["companion-version", "half-installed"]


@pytest.mark.parametrize(
    ("text", "damaged", "first_fault"),
    [
        ("AssertionError: Torch not compiled with CUDA enabled", "yaml", "cpu-only-torch"),
        # the class would do, and the text names another package
        ("ModuleNotFoundError: No module named 'pip'", "yaml", "companion-version"),
        # both are about torch
        ("AssertionError: Torch not compiled with CUDA enabled", "torch", "half-installed"),
        # files that are gone bring crashes about, whichever they are
        (
            "Fatal Python error: Segmentation fault\n\nCurrent thread 0x1 (most recent call first):",
            "yaml",
            "half-installed",
        ),
    ],
)
def test_what_was_handed_in_goes_before_what_facts_show_of_something_else(
    text: str, damaged: str, first_fault: str
) -> None:
    env = environment(torch="2.5.1+cpu", torchvision=None, libraries=())
    env = msgspec.structs.replace(env, distributions=(*env.distributions, distribution("yaml", "6.0")))
    item = env.distribution(damaged)
    assert item is not None
    lost = DistributionFiles(
        distribution=item.name, version=item.version, metadata_path=item.metadata_path, recorded=9, matching=8,
        missing=(f"lib/{item.name}/tokens.py",), missing_count=1,
    )  # fmt: skip
    facts = Facts(host=Host(), environment=msgspec.structs.replace(env, files=(lost,)))
    playbooks = loader.load_all()
    found = diagnose(read_text(text.encode().splitlines(), playbooks), facts, playbooks, prefix=None, log="log")
    assert found.findings[0].fault == first_fault, [item.fault for item in found.findings]
