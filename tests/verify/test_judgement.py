"""What outcomes before and after mean for the exchange."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envmedic.engine.verify.verdict import comparable, otherwise
from envmedic.engine.verify.verification import judge, reproduced, verification
from envmedic.model.checks import Outcome, Role, Status, name_of

GPU = "cuda:0 NVIDIA H200"


def _outcome(check: str, status: Status, role: Role = "informative", device: str | None = None, **more: Any) -> Outcome:
    return Outcome(check=check, status=status, role=role, device=device, **more)


def _pair(before: Status, after: Status, role: Role, device: str | None = "cpu") -> tuple[Outcome, Outcome]:
    return _outcome("nms", before, role, device), _outcome("nms", after, role, device)


@pytest.mark.parametrize(
    ("role", "before", "after", "passed"),
    [
        ("playbook", "fail", "pass", True),
        ("playbook", "pass", "pass", True),
        ("playbook", "fail", "fail", False),
        ("playbook", "fail", "crash", False),
        ("playbook", "fail", "timeout", False),
        ("playbook", "fail", "skip", False),
        ("playbook", "skip", "skip", False),
        ("reproduction", "fail", "pass", True),
        ("reproduction", "crash", "pass", True),
        ("reproduction", "timeout", "pass", True),
        ("reproduction", "pass", "pass", False),
        ("reproduction", "skip", "pass", False),
        ("reproduction", "fail", "fail", False),
        ("reproduction", "fail", "skip", False),
        ("regression", "pass", "pass", True),
        ("regression", "pass", "fail", False),
        ("regression", "pass", "skip", False),
        ("regression", "fail", "fail", True),
        ("regression", "fail", "crash", True),
        ("regression", "fail", "pass", True),
        ("regression", "skip", "skip", True),
        ("informative", "pass", "fail", False),
        ("informative", "pass", "skip", False),
        ("informative", "skip", "timeout", False),
        ("informative", "fail", "fail", True),
        ("informative", "skip", "pass", True),
    ],
)
def test_one_check_decides_by_its_role(role: Role, before: Status, after: Status, passed: bool) -> None:  # noqa: FBT001
    old, new = _pair(before, after, role)
    assert judge([old], [new], no_gpu=False).passed is passed


@given(
    st.lists(
        st.tuples(
            st.sampled_from("abc"),
            st.sampled_from(["pass", "fail", "skip"]),
            st.sampled_from(["playbook", "regression", "informative"]),
        )
    )
)
def test_what_stays_as_it_was_is_no_regression_and_what_passed_is_never_lost(
    rows: list[tuple[str, Status, Role]],
) -> None:
    outcomes = [_outcome(check, status, role) for check, status, role in {row[0]: row for row in rows}.values()]
    same = judge(outcomes, outcomes, no_gpu=False)
    assert same.regressions == ()
    assert same.passed is not any(o.role == "playbook" and o.status != "pass" for o in outcomes)
    lost = judge(outcomes, [], no_gpu=False)
    assert lost.passed is not any(o.role == "playbook" or o.status == "pass" for o in outcomes)


def test_the_judgement_names_what_went_wrong() -> None:
    before = [
        _outcome("nms", "fail", "playbook", "cpu"),
        _outcome("import decord", "pass", "regression"),
        _outcome("import old", "fail", "regression", reason="ImportError: x"),
        _outcome("command train", "pass", "reproduction"),
    ]
    after = [
        _outcome("nms", "crash", "playbook", "cpu", reason="ended by SIGSEGV"),
        _outcome("import decord", "fail", "regression", reason="ImportError: y"),
        _outcome("import old", "fail", "regression", reason="ImportError: x"),
        _outcome("command train", "pass", "reproduction"),
    ]
    judgement = judge(before, after, no_gpu=False)
    assert judgement.failed_required == (
        "nms on cpu: crash, ended by SIGSEGV",
        "command train: the fault was not reproduced, it did not fail before",
    )
    assert judgement.regressions == ("import decord: fail, ImportError: y (passed before)",)
    assert judgement.still_failing == ("import old: fail, ImportError: x",)
    assert judgement.not_reproduced == ("command train",)


def test_what_should_be_known_of_what_passed_is_told_once_and_decides_nothing() -> None:
    outcomes = [
        _outcome("numerics", "pass", device=f"cuda:{number} H100", warnings=("TF32 is on",)) for number in range(2)
    ]
    found = verification("/env", outcomes)
    assert (found.passed, found.gpu, found.warnings) == (True, "verified", ("cuda:0, cuda:1: TF32 is on",))


def test_facts_can_confirm_a_fault_that_does_not_reproduce() -> None:
    old, new = _pair("pass", "pass", "reproduction")
    judgement = judge([old], [new], no_gpu=False, confirmed=True)
    assert (judgement.passed, judgement.not_reproduced) == (True, ("nms",))


@pytest.mark.parametrize(("now", "passed"), [("pass", True), ("fail", False), ("skip", False)])
def test_facts_need_not_tell_of_a_fault_whose_reproduction_passes(now: Status, passed: bool) -> None:  # noqa: FBT001
    names = ("facts unmet-requirement", "import boxes")
    before = [_outcome(name, "fail", "reproduction") for name in names]
    after = [_outcome(name, status, "reproduction") for name, status in zip(names, ("skip", now), strict=True)]
    assert judge(before, after, no_gpu=False).passed is passed
    assert not judge(before[:1], after[:1], no_gpu=False).passed, "their silence alone proves nothing"


def test_a_fault_reproduces_when_one_device_shows_it() -> None:
    before = [_outcome("nms", "pass", "reproduction", "cpu"), _outcome("nms", "fail", "reproduction", GPU)]
    after = [_outcome("nms", "pass", "reproduction", "cpu"), _outcome("nms", "pass", "reproduction", GPU)]
    assert judge(before, after, no_gpu=False).passed
    assert reproduced(before)
    assert not reproduced(after)
    assert not reproduced([_outcome("nms", "fail", "informative")])


@pytest.mark.parametrize("role", ["playbook", "reproduction"])
def test_a_gpu_that_was_skipped_blocks_unless_the_user_does_without(role: Role) -> None:
    before = [_outcome("nms", "fail", role, "cpu"), _outcome("nms", "skip", role, "cuda", reason="no GPU is visible")]
    after = [_outcome("nms", "pass", role, "cpu"), _outcome("nms", "skip", role, "cuda", reason="no GPU is visible")]
    judgement = judge(before, after, no_gpu=False)
    assert not judgement.passed
    assert judgement.skipped_required == ("nms on cuda: skip, no GPU is visible",)
    judgement = judge(before, after, no_gpu=True)
    assert judgement.passed
    assert (judgement.gpu, judgement.gpu_reason) == ("not verified", "no GPU is visible")


def test_without_gpus_a_check_on_the_cpu_still_has_to_pass() -> None:
    old, new = _pair("fail", "skip", "playbook")
    assert not judge([old], [new], no_gpu=True).passed


def test_a_fault_of_the_gpu_alone_need_not_reproduce_where_the_user_does_without_gpus() -> None:
    before = [_outcome("nms", "pass", "reproduction", "cpu"), _outcome("nms", "skip", "reproduction", "cuda")]
    assert judge(before, before, no_gpu=True).passed
    assert not judge(before, before, no_gpu=False).passed


def test_gpus_that_torch_could_not_name_before_are_compared_with_those_that_it_names_now() -> None:
    before = [_outcome("matmul-fp32", "fail", device="cuda", reason="import torch: x")]
    after = [_outcome("matmul-fp32", "fail", device=GPU), _outcome("matmul-fp32", "pass", device="cuda:1 NVIDIA H200")]
    assert judge(before, after, no_gpu=False).passed
    assert not judge([_outcome("matmul-fp32", "skip", device="cuda")], after, no_gpu=False).passed
    lost = judge(
        [_outcome("matmul-fp32", "pass", device=GPU)], [_outcome("matmul-fp32", "skip", device="cuda")], no_gpu=False
    )
    assert not lost.passed


def test_what_has_no_meaning_on_a_device_counts_for_nothing() -> None:
    old = _outcome("matmul-bf16", "skip", "playbook", "cuda:0 Tesla T4", applicable=False)
    good = _outcome("matmul-fp32", "pass", "playbook", "cuda:0 Tesla T4")
    judgement = judge([old, good], [old, good], no_gpu=False)
    assert (judgement.passed, judgement.gpu) == (True, "verified")


def test_pip_check_blocks_only_what_is_new() -> None:
    lines = ["The package `a` requires `b>=2`, but `1.0` is installed", "x was built for a different platform"]
    before = [_outcome("pip-check", "fail", "regression", detail="\n".join(lines))]
    less = [
        _outcome("pip-check", "fail", "regression", detail="The package `a` requires `b>=2`, but `1.1` is installed")
    ]
    more = [
        _outcome(
            "pip-check",
            "fail",
            "regression",
            detail="\n".join([*lines, "The package `c` requires `d`, but it's not installed"]),
        )
    ]
    assert judge(before, before, no_gpu=False).passed
    assert judge(before, less, no_gpu=False).passed
    judgement = judge(before, more, no_gpu=False)
    assert judgement.regressions == ("pip-check: The package `c` requires `d`, but it's not installed",)
    assert not judge([_outcome("pip-check", "pass", "regression")], less, no_gpu=False).passed


@pytest.mark.parametrize(
    ("outcomes", "gpu", "reason"),
    [
        ([_outcome("matmul", "pass", device="cpu")], "not needed", ""),
        ([_outcome("matmul", "pass", device=GPU)], "verified", ""),
        ([_outcome("matmul", "skip", device="cuda", reason="none")], "not verified", "none"),
        ([_outcome("a", "skip", device="cuda", reason="none"), _outcome("b", "fail", device=GPU, reason="wrong")],
         "not verified", f"b on {GPU}: fail, wrong"),
    ],
)  # fmt: skip
def test_gpu_verdict(outcomes: list[Outcome], gpu: str, reason: str) -> None:
    document = verification("/env", outcomes)
    assert (document.gpu, document.gpu_reason) == (gpu, reason)


@pytest.mark.parametrize(
    ("check", "before", "gpu"),
    [("numba", "fail", "verified"), ("numba", "pass", "not verified"), ("matmul-fp32", "fail", "not verified")],
)
def test_another_library_that_fails_as_before_leaves_the_gpu_verified(check: str, before: Status, gpu: str) -> None:
    proven = [_outcome("torchvision-nms", "pass", "playbook", GPU)]
    after = [*proven, _outcome(check, "fail", "regression", GPU)]
    assert judge([*proven, _outcome(check, before, "regression", GPU)], after, no_gpu=False).gpu == gpu
    assert judge(proven, after, no_gpu=False).gpu == "not verified"  # it may have worked


@pytest.mark.parametrize(
    ("outcome", "no_gpu", "passed"),
    [
        (_outcome("matmul", "pass", device="cpu"), False, True),
        (_outcome("matmul", "fail", device="cpu"), False, False),
        (_outcome("torchvision-nms", "skip", device="cpu", reason="torchvision is not installed"), False, True),
        (_outcome("torchvision-nms", "skip", "playbook", "cpu"), False, False),
        (_outcome("matmul", "skip", device="cuda"), False, False),
        (_outcome("matmul", "skip", "playbook", device="cuda"), True, True),
        (_outcome("matmul", "crash", device="cuda"), True, False),
        (_outcome("matmul-bf16", "skip", device=GPU, applicable=False), False, True),
    ],
)
def test_a_verification_passes_when_nothing_fails_and_nothing_needed_was_skipped(
    outcome: Outcome,
    no_gpu: bool,  # noqa: FBT001
    passed: bool,  # noqa: FBT001
) -> None:
    assert verification("/env", [outcome], no_gpu=no_gpu).passed is passed


def test_a_baseline_forgives_what_failed_then_and_nothing_else() -> None:
    baseline = [_outcome("import a", "fail"), _outcome("import b", "pass")]
    assert verification("/env", baseline, baseline=baseline).passed
    worse = verification("/env", [_outcome("import a", "fail"), _outcome("import b", "fail")], baseline=baseline)
    assert (worse.passed, worse.regressions) == (False, ("import b: fail (passed before)",))
    assert not verification("/env", [_outcome("import a", "fail")], baseline=baseline).passed
    assert not verification("/env", [_outcome("import a", "fail", "playbook")], baseline=baseline).passed


def test_with_a_baseline_only_what_is_worse_decides_and_what_is_better_is_told() -> None:
    baseline = [
        _outcome("matmul-fp32", "fail", "playbook", "cuda:0 A100"),
        _outcome("fft", "crash", "playbook", "cuda:0 A100"),
        _outcome("conv-fp32", "pass", "playbook", "cuda:0 A100"),
        _outcome("linalg", "skip", "playbook", "cuda:0 A100", reason="why"),
    ]
    now = [
        _outcome("matmul-fp32", "fail", "playbook", "cuda:0 H200"),
        _outcome("fft", "pass", "playbook", "cuda:0 H200"),
        _outcome("conv-fp32", "pass", "playbook", "cuda:0 H200"),
        _outcome("linalg", "skip", "playbook", "cuda:0 H200", reason="why"),
    ]
    found = verification("/env", now, baseline=baseline)
    assert found.passed
    assert found.as_before == ("matmul-fp32 on cuda:0 H200: fail", "linalg on cuda:0 H200: skip, why")
    assert found.better == ("fft on cuda:0 H200: pass (crash before)",)
    assert not verification("/env", now).passed
    worse = [*now[:2], _outcome("conv-fp32", "timeout", "playbook", "cuda:0 H200"), now[3]]
    found = verification("/env", worse, baseline=baseline)
    assert (found.passed, found.regressions) == (False, ("conv-fp32 on cuda:0 H200: timeout (passed before)",))


def test_what_was_not_asked_for_now_is_not_missed() -> None:
    outcomes = [
        _outcome(name, "pass") for name in ("import a", "import-sequence a b", "matmul-fp32", "attention-flash")
    ]
    full = verification("/env", outcomes, profile="full")
    assert [name_of(outcome.check) for outcome in outcomes] == ["import", "import-sequence", "matmul", "attention"]
    kept = comparable(full, "standard", ("import", "matmul"))
    assert [outcome.check for outcome in kept] == ["import a", "matmul-fp32"]
    assert [outcome.check for outcome in comparable(full, "quick", ("import", "matmul"))] == ["matmul-fp32"]
    quick = verification("/env", outcomes, profile="quick")
    assert [outcome.check for outcome in comparable(quick, "quick", ("import",))] == ["import a"]


@pytest.mark.parametrize(
    ("status", "role", "excuse", "passed"),
    [
        ("fail", "informative", "seaborn is not installed", True),
        ("fail", "informative", "", False),
        ("crash", "informative", "seaborn is not installed", False),
        ("timeout", "informative", "", False),
        ("fail", "playbook", "seaborn is not installed", False),
    ],
)
def test_an_import_that_lacks_an_optional_module_is_told_and_does_not_decide(
    status: Status,
    role: Role,
    excuse: str,
    passed: bool,  # noqa: FBT001
) -> None:
    document = verification("/env", [_outcome("import plots", status, role, None, excuse=excuse)])
    assert document.passed is passed
    assert document.excused == (("import plots: seaborn is not installed",) if passed else ())


def test_an_excuse_is_none_for_what_imported_before() -> None:
    baseline = [_outcome("import plots", "pass", device=None)]
    now = [_outcome("import plots", "fail", device=None, excuse="seaborn is not installed")]
    assert not verification("/env", now, baseline=baseline).passed
    assert not judge(baseline, now, no_gpu=False).passed


def test_an_import_that_fails_for_another_reason_than_before_is_named() -> None:
    before = [Outcome(check="import a", status="fail", reason="one"), Outcome(check="import b", status="fail")]
    after = [Outcome(check="import a", status="fail", reason="another"), Outcome(check="import b", status="fail")]
    assert otherwise(before, after) == (after[0],)
    assert otherwise(before, [Outcome(check="import a", status="pass")]) == ()
