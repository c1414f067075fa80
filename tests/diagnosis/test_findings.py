from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import pytest
from msgspec.structs import replace

from envmedic.diagnosis.findings import diagnose
from envmedic.diagnosis.roots import explained
from envmedic.model.facts import Environment, Facts, Leftover
from envmedic.model.findings import Diagnosis, FixKind
from envmedic.model.playbook import (
    NO_TEXT,
    AdviseStep,
    Condition,
    LoadedPlaybook,
    Playbook,
    ReadText,
    Signature,
    TextMatch,
)
from envmedic.model.registries.faults import FAULT_CLASSES, Fault
from envmedic.playbook.matching.lines import passing
from envmedic.playbook.matching.match import read_text
from envmedic.playbook.schema import loader
from tests.diagnosis.helpers import TORCH_LIBRARY, environment, facts, library

NO_KERNEL = "NotImplementedError: Could not run 'torchvision::nms' with arguments from the 'CUDA' backend."


@cache
def shipped() -> tuple[LoadedPlaybook, ...]:
    return (loader.load_file(loader.shipped_directory() / "nms-cuda.yaml", "shipped"),)


def nms(observed: Environment | None, text: str | None = None) -> Diagnosis:
    said = read_text(text.encode().split(b"\n"), shipped()) if text else NO_TEXT
    return diagnose(said, facts(observed), shipped(), prefix="/env", log="log" if text else None)


BROKEN = {
    "CPU build beside CUDA torch": environment(torchvision="0.20.1+cpu", has_gpu_code=False),
    "no GPU code and no label": environment(torchvision="0.20.1", has_gpu_code=False),
    "0.18.1 on 2.5.1": environment(torchvision="0.18.1", requires_torch="torch==2.3.1"),
    "0.19.1 on 2.5.1": environment(torchvision="0.19.1", requires_torch="torch==2.4.1"),
    "0.25.0 on 2.11": environment(torch="2.11.0+cu130", torchvision="0.25.0", requires_torch="torch==2.10.0"),
    "another release that states no requirement": environment(torchvision="0.18.1", requires_torch=None),
    "two copies": environment(copies=2),
    "a leftover": environment(leftovers=(Leftover(kind="tilde", path="~orchvision", name="torchvision"),)),
    "only a leftover": environment(
        torchvision=None, leftovers=(Leftover(kind="orphan-package", path="torchvision", name="torchvision"),)
    ),
    "unresolved symbols": environment(libraries=(TORCH_LIBRARY, library(unresolved=("_ZN3c10",)))),
    "a library that it needs is missing": environment(
        libraries=(TORCH_LIBRARY, library(missing=("libcudart.so.11.0",)))
    ),
    "no operator library": environment(libraries=(TORCH_LIBRARY,), has_gpu_code=None),
    "another major version of CUDA": environment(torchvision="0.20.1+cu118"),
}


@pytest.mark.parametrize("observed", BROKEN.values(), ids=BROKEN.keys())
def test_facts_confirm_a_torchvision_that_does_not_fit(observed: Environment) -> None:
    alone = nms(observed)
    assert (alone.verdict, alone.findings[0].confirmed, alone.findings[0].signature) == ("env", True, None)
    assert any(item.kind == "fact" and item.supports for item in alone.findings[0].evidence)
    with_text = nms(observed, NO_KERNEL).findings[0]
    assert with_text.confirmed is True
    assert with_text.confidence > alone.findings[0].confidence
    assert [item.where for item in with_text.evidence if item.kind == "text"] == ["log:1"]


COHERENT = {
    "CUDA": environment(),
    "CPU": environment(torch="2.5.1+cpu", torchvision="0.20.1+cpu", has_gpu_code=False),
    "default index without labels": environment(
        torch="2.11.0", torch_variant="cu130", torchvision="0.26.0", requires_torch="torch==2.11.0"
    ),
    "stable ABI": environment(torch="2.14.1", torchvision="0.29.1", requires_torch="torch>=2.14.0"),
    "no requirement stated": environment(requires_torch=None),
    "not installed": environment(torchvision=None),
}


@pytest.mark.parametrize("observed", COHERENT.values(), ids=COHERENT.keys())
def test_facts_refute_it_where_the_family_is_coherent(observed: Environment) -> None:
    assert nms(observed).verdict == "healthy"
    diagnosis = nms(observed, NO_KERNEL)
    (finding,) = diagnosis.findings
    assert (diagnosis.verdict, finding.confirmed) == ("unknown", False)
    assert finding.confidence < 0.5
    assert "facts refute it" in finding.rejected[0].reason
    assert finding.rejected[0].reason in (diagnosis.reason or "")


UNREADABLE = {
    "operator library": environment(libraries=(TORCH_LIBRARY, library(error="truncated")), has_gpu_code=None),
    "no library read at all": environment(libraries=(), has_gpu_code=None),
}


@pytest.mark.parametrize("observed", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_facts_that_could_not_be_read_leave_it_open(observed: Environment) -> None:
    (finding,) = (item for item in nms(observed, NO_KERNEL).findings if not item.latent)
    assert (finding.confirmed, finding.confidence) == (None, 0.97)
    assert all(item.latent for item in nms(observed).findings), "that a library cannot be read is told by itself"


def test_text_alone_is_a_hypothesis() -> None:
    diagnosis = diagnose(read_text([NO_KERNEL.encode()], shipped()), None, shipped(), prefix=None, log="log")
    (finding,) = diagnosis.findings
    assert (diagnosis.verdict, finding.confirmed, finding.playbook) == ("env", None, "nms-cuda")
    assert "torchvision::nms has no kernel for CUDA" in finding.summary
    assert finding.groups == {"operator": "torchvision::nms", "backend": "CUDA"}
    assert {item.kind for item in finding.evidence} == {"text"}
    assert all(item.title and item.why_not for item in finding.alternatives)


def test_what_nothing_knows_is_unknown_with_a_reason() -> None:
    diagnosis = nms(environment(), "KeyError: 'loss'")
    assert (diagnosis.verdict, diagnosis.findings) == ("unknown", ())
    assert diagnosis.reason


def test_a_healthy_verdict_needs_an_environment_whose_python_starts() -> None:
    assert nms(None).verdict == "unknown"
    broken = nms(environment(starts=False))
    assert (broken.verdict, broken.reason) == ("unknown", "the environment's Python does not start: gone")


def playbook(
    identifier: str,
    fault: Fault,
    *,
    confidence: float = 0.9,
    fix_kind: FixKind = "other",
    when: Condition | None = None,
    summary: str | None = None,
) -> LoadedPlaybook:
    return LoadedPlaybook(
        playbook=Playbook(
            id=identifier,
            fault=fault,
            title=f"Title of {identifier}",
            explain="Because.",
            fix_kind=fix_kind,
            signatures=(
                Signature(id="s", pattern=identifier, sample=identifier, confidence=confidence, summary=summary),
            ),
            when=when,
            vars={"where": "in {env.kind}"},
            steps=(),
        ),
        path="-",
        sha256="0",
        origin="file",
    )


def matches(*identifiers: str) -> tuple[TextMatch, ...]:
    return tuple(
        TextMatch(playbook=identifier, signature="s", line_number=number, line=identifier)
        for number, identifier in enumerate(identifiers, start=1)
    )


def order(playbooks: Sequence[LoadedPlaybook], observed: Facts | None = None) -> list[str | None]:
    names = tuple(item.playbook.id for item in playbooks)
    diagnosis = diagnose(ReadText(matches=tuple(matches(*names))), observed, playbooks, prefix=None, log="log")
    return [finding.playbook for finding in diagnosis.findings]


def test_roots_rank_above_the_symptoms_that_they_explain() -> None:
    symptom = playbook("symptom", "extension-undefined-symbol", confidence=0.99)
    root = playbook("root", "torchvision-ops", confidence=0.8)
    assert order([symptom, root]) == ["root", "symptom"]
    doubtful = playbook("root", "torchvision-ops", confidence=0.4)
    assert order([symptom, doubtful]) == ["symptom", "root"]


def test_what_facts_confirm_ranks_above_what_they_leave_open_and_refuted_comes_last() -> None:
    venv = Condition(fact="env.kind", operator="is", value="venv")
    confirmed = playbook("confirmed", "numpy-abi", confidence=0.6, when=venv)
    stated = playbook("stated", "libstdcxx", confidence=0.95)
    refuted = playbook("refuted", "mkl-openmp", confidence=0.99, when=Condition(negated=venv))
    observed = facts(environment())
    assert order([refuted, stated, confirmed], observed) == ["confirmed", "stated", "refuted"]
    names = matches("refuted", "stated", "confirmed")
    diagnosis = diagnose(ReadText(matches=tuple(names)), observed, [refuted, stated, confirmed], prefix=None, log="log")
    assert [item.fault for item in diagnosis.findings[0].rejected] == ["mkl-openmp"]
    assert "kind of the environment: venv" in diagnosis.findings[0].rejected[0].reason


@pytest.mark.parametrize(
    ("fault", "fix_kind", "verdict"),
    [
        ("gpu-host-fault", "other", "host"),
        ("driver-too-old", "upgrade-driver", "host"),
        ("driver-too-old", "reinstall-matching-wheel", "env"),
        ("numpy-abi", "pin-package", "env"),
        ("numpy-abi", "not-an-env-problem", "not-an-env-problem"),
    ],
)
def test_the_verdict_follows_the_best_finding(fault: Fault, fix_kind: FixKind, verdict: str) -> None:
    only = playbook("only", fault, fix_kind=fix_kind)
    diagnosis = diagnose(ReadText(matches=tuple(matches("only"))), None, [only], prefix=None, log="log")
    assert diagnosis.verdict == verdict
    assert (diagnosis.findings == ()) == (verdict == "not-an-env-problem")
    assert (diagnosis.reason == "Title of only") == (verdict == "not-an-env-problem")


def test_the_best_signature_of_a_playbook_speaks_for_it_and_the_others_are_evidence() -> None:
    text = "UserWarning: Failed to load image Python extension: \n" + NO_KERNEL + "\n" + NO_KERNEL
    (finding,) = nms(environment(torchvision="0.18.1", requires_torch="torch==2.3.1"), text).findings
    assert finding.signature == "no-cuda-kernel"
    shown = [(item.where, item.what) for item in finding.evidence if item.kind == "text"]
    assert [where for where, _ in shown] == ["log:2", "log:1"]
    assert shown[0][1].endswith("(2 lines like it)")


def test_texts_are_filled_in_with_groups_facts_and_variables() -> None:
    only = playbook("only", "numpy-abi", summary="broken {where}, Python {env.python}, {torch.arch-list}, {{x}}")
    (finding,) = diagnose(
        ReadText(matches=tuple(matches("only"))), facts(environment()), [only], prefix=None, log="log"
    ).findings
    assert finding.summary == "broken in venv, Python 3.11.7, , {x}"
    (blind,) = diagnose(ReadText(matches=tuple(matches("only"))), None, [only], prefix=None, log="log").findings
    assert blind.summary == "broken in unknown, Python unknown, unknown, {x}"


def test_no_fault_explains_itself_and_none_explains_its_own_cause() -> None:
    for fault, row in FAULT_CLASSES.items():
        symptoms = row.symptoms
        assert fault not in symptoms
        assert not explained(fault, frozenset({fault}))
        for symptom in symptoms:
            assert fault not in FAULT_CLASSES[symptom].symptoms, (fault, symptom)


def no_fault(identifier: str = "none", confidence: float = 0.97) -> LoadedPlaybook:
    found = playbook(identifier, "numpy-abi", confidence=confidence, fix_kind="not-an-env-problem")
    advised = AdviseStep(text="Take a smaller {thing}.")
    return replace(found, playbook=replace(found.playbook, fault=None, steps=(advised,), vars={"thing": "batch"}))


def test_what_is_no_fault_of_an_environment_is_explained_with_advice() -> None:
    diagnosis = diagnose(ReadText(matches=tuple(matches("none"))), None, [no_fault()], prefix=None, log="log")
    assert (diagnosis.verdict, diagnosis.findings) == ("not-an-env-problem", ())
    assert (diagnosis.reason, diagnosis.advice) == ("Title of none", ("Take a smaller batch.",))
    weak = diagnose(ReadText(matches=tuple(matches("none"))), None, [no_fault(confidence=0.4)], prefix=None, log="log")
    assert (weak.verdict, weak.findings, weak.advice) == ("unknown", (), ())
    assert "perhaps no environment is at fault" in (weak.reason or "")


VENV = Condition(fact="env.kind", operator="is", value="venv")


def test_facts_alone_do_not_explain_a_text_that_surely_says_something_else() -> None:
    shown = playbook("shown", "numpy-abi", when=VENV)
    observed = facts(environment())
    sure = diagnose(ReadText(matches=tuple(matches("none"))), observed, [shown, no_fault()], prefix=None, log="log")
    assert (sure.verdict, sure.findings) == ("not-an-env-problem", ())
    assert sure.reason == "Title of none; besides, the facts show numpy-abi: Title of shown"
    unsure = diagnose(
        ReadText(matches=tuple(matches("none"))), observed, [shown, no_fault(confidence=0.7)], prefix=None, log="log"
    )
    assert (unsure.verdict, [finding.fault for finding in unsure.findings]) == ("env", ["numpy-abi"])
    both = diagnose(
        ReadText(matches=tuple(matches("shown", "none"))), observed, [shown, no_fault()], prefix=None, log="log"
    )
    assert both.verdict == "env", "the text speaks of it too"


def text_of(*lines: tuple[str, str]) -> tuple[TextMatch, ...]:
    return tuple(
        TextMatch(playbook=name, signature="s", line_number=number, line=line, passing=passing(line.encode()))
        for number, (name, line) in enumerate(lines, start=1)
    )


def test_what_stopped_the_program_ranks_above_what_it_warned_of() -> None:
    line = "/x/y.py:13: UserWarning: oops"
    warned = playbook("warned", "libstdcxx", confidence=0.99)
    stopped = playbook("stopped", "numpy-abi", confidence=0.8)
    found = text_of(("warned", line), ("stopped", "ImportError: oops"))
    diagnosis = diagnose(ReadText(matches=tuple(found)), None, [warned, stopped], prefix=None, log="log")
    assert [finding.playbook for finding in diagnosis.findings] == ["stopped", "warned"]
    crashed = text_of(("warned", line), ("none", "ValueError: oops"))
    assert (
        diagnose(ReadText(matches=tuple(crashed)), None, [warned, no_fault()], prefix=None, log="log").verdict
        == "not-an-env-problem"
    )
    alone = diagnose(ReadText(matches=tuple(found[:1])), None, [warned], prefix=None, log="log")
    assert alone.verdict == "env", "a warning is all there is"


def test_a_warning_that_facts_confirm_does_not_outrank_what_was_raised() -> None:
    venv = Condition(fact="env.kind", operator="is", value="venv")
    warned = playbook("warned", "libstdcxx", confidence=0.99, when=venv)
    stopped = playbook("stopped", "numpy-abi", confidence=0.8)
    texts = text_of(("warned", "/x/y.py:13: UserWarning: oops"), ("stopped", "ImportError: oops"))
    found = diagnose(ReadText(matches=texts), facts(environment()), [warned, stopped], prefix="/env", log="log")
    assert [item.playbook for item in found.findings] == ["stopped", "warned"]
    root = playbook("warned", "duplicate-install", confidence=0.99, when=venv)
    follows = playbook("stopped", "torchvision-ops", confidence=0.8)
    found = diagnose(ReadText(matches=texts), facts(environment()), [root, follows], prefix="/env", log="log")
    assert [item.playbook for item in found.findings] == ["warned", "stopped"], "it explains what was raised"


def test_a_harmless_warning_outweighs_nothing() -> None:
    noise, hint = no_fault("noise", 0.9), playbook("hint", "numpy-abi", confidence=0.3)
    found = text_of(("noise", "FutureWarning: oops"), ("hint", "ImportError: oops"))
    assert diagnose(ReadText(matches=tuple(found)), None, [noise, hint], prefix=None, log="log").verdict == "unknown"
    assert (
        diagnose(ReadText(matches=tuple(found[:1])), None, [noise, hint], prefix=None, log="log").verdict
        == "not-an-env-problem"
    )


def test_of_causes_that_are_equally_sure_the_first_in_the_text_is_the_root() -> None:
    first = playbook("first", "numpy-abi", confidence=0.91)
    second = playbook("second", "libstdcxx", confidence=0.94)
    assert order([first, second]) == ["first", "second"]
    assert order([second, first]) == ["second", "first"]
    surer = playbook("surer", "libstdcxx", confidence=0.97)
    assert order([first, surer]) == ["surer", "first"]


def test_signatures_that_rule_a_repair_out_are_weighed_against_those_of_the_same_playbook() -> None:
    text = "RuntimeError: Could not run 'torchvision::nms' with arguments from the 'MPS' backend."
    assert diagnose(read_text([text.encode()], shipped()), None, shipped(), prefix=None, log="log").verdict == (
        "not-an-env-problem"
    )
    both = read_text([text.encode(), NO_KERNEL.encode()], shipped())
    diagnosis = diagnose(both, None, shipped(), prefix=None, log="log")
    assert [finding.signature for finding in diagnosis.findings] == ["no-cuda-kernel"]


FOOTER = (
    "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be "
    "incorrect.\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1\n"
    "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n"
)


@pytest.mark.parametrize(
    ("message", "fault"),
    [
        ("no kernel image is available for execution on the device", "no-kernel-image"),
        ("the provided PTX was compiled with an unsupported toolchain.", "driver-too-old"),
        ("system not yet initialized", "gpu-host-fault"),
        ("an illegal memory access was encountered", None),
        ("device-side assert triggered", None),
    ],
)
def test_what_torch_adds_to_every_error_of_cuda_decides_nothing(message: str, fault: str | None) -> None:
    lines = f"torch.AcceleratorError: CUDA error: {message}\n{FOOTER}".encode().splitlines()
    playbooks = loader.load_all()
    found = diagnose(read_text(lines, playbooks), None, playbooks, prefix=None, log="-")
    assert (found.findings[0].fault if found.findings else None) == fault
    assert (found.verdict == "not-an-env-problem") == (fault is None)
