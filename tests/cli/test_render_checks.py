"""Tables of checks, where there are many of them."""

from __future__ import annotations

import msgspec

from envmedic.model.checks import Outcome, Status, Verification
from envmedic.render.documents.checks import comparison_lines, outcome_lines, verification_lines
from envmedic.render.style import Style

PLAIN = Style(colour=False)
GPU = "cuda:0 NVIDIA H100 80GB HBM3"


def test_many_gpu_checks_skipped_for_one_reason_are_one_line() -> None:
    parts = ("matmul-fp32", "matmul-fp8", "fft", "linalg")
    skipped = [Outcome(check=name, status="skip", device="cuda", reason="no GPU is visible") for name in parts]
    other = Outcome(check="sparse", status="skip", device="cuda", reason="torch 1.7 has none")
    told = "  4 skipped on GPUs, no GPU is visible: matmul, fft, linalg"
    lines = PLAIN.text(outcome_lines([*skipped, other]))
    assert (len(lines), lines[-1]) == (2, told)
    assert PLAIN.text(comparison_lines(skipped, skipped)) == ["Checks", told]
    failed = msgspec.structs.replace(skipped[0], status="fail")
    assert len(PLAIN.text(comparison_lines([failed, *skipped[1:]], skipped))) == 6, "too few are left"


def test_checks_of_gpus_that_an_import_takes_with_it_are_one_line() -> None:
    reason = "import torch: AttributeError: no"
    names = ("matmul-fp32", "matmul-fp8", "fft", "linalg")
    after = [Outcome(check=name, status="fail", device="cuda", reason=reason) for name in names]
    before = [msgspec.structs.replace(item, status="skip", reason="no GPU") for item in after]
    told = f"  4 failed on GPUs, {reason}: matmul, fft, linalg"
    assert PLAIN.text(outcome_lines(after)) == [told]
    assert PLAIN.text(comparison_lines(before, after)) == ["Checks", told]


def test_a_verification_that_did_not_pass_says_what_to_do_next() -> None:
    failed = [
        Outcome(check="torchvision-nms", status="fail", device=device, role="playbook", points_to=("torchvision-ops",))
        for device in ("cpu", "cuda")
    ]
    document = Verification(prefix="/my env", gpu="not verified", passed=False, outcomes=tuple(failed))
    assert PLAIN.text(verification_lines(document))[-3:] == [
        "  torchvision-nms points to: torchvision-ops",
        "",
        "Next: envmedic diagnose -p '/my env'",
    ]


def test_a_verification_says_what_a_failure_points_to_and_how_it_compares() -> None:
    failed = Outcome(
        check="complex-kernels", status="fail", role="playbook", points_to=("nvrtc-arch", "missing-cuda-library")
    )
    document = Verification(
        prefix="/env",
        gpu="not verified",
        passed=True,
        outcomes=(failed,),
        baseline="before.json",
        as_before=("complex-kernels: fail",),
        better=("fft: pass (crash before)",),
    )
    assert PLAIN.text(verification_lines(document))[-4:] == [
        "Verification  passed, gpu: not verified",
        "  as before: complex-kernels: fail",
        "  better: fft: pass (crash before)",
        "  complex-kernels points to: nvrtc-arch, missing-cuda-library",
    ]


def on_gpu(check: str, status: Status, device: str | None = GPU) -> Outcome:
    return Outcome(check=check, status=status, device=device, seconds=0.1)


def test_what_passes_on_a_gpu_is_counted_and_what_it_repaired_has_a_row() -> None:
    before = [on_gpu("torchvision-nms", "fail")]
    after = [on_gpu("torchvision-nms", "pass"), *(on_gpu(f"matmul-{number}", "pass") for number in range(40))]
    shown = PLAIN.text(comparison_lines(before, after))
    assert shown[-1] == f"  40 checks pass on {GPU}"
    assert sum("matmul" in row for row in shown) == 0
    assert [row.split() for row in shown if "torchvision-nms" in row] == [
        ["torchvision-nms", "cuda:0", "fail", "pass", "0.1", "s"]
    ]


def test_a_failure_among_them_keeps_its_row() -> None:
    after = [on_gpu("conv", "fail"), *(on_gpu(f"matmul-{number}", "pass") for number in range(4))]
    shown = PLAIN.text(comparison_lines([], after))
    assert any("conv" in row and "fail" in row for row in shown)
    assert shown[-1] == f"  4 checks pass on {GPU}"


def test_the_name_of_a_gpu_stands_once_below_its_rows() -> None:
    shown = PLAIN.text(outcome_lines([on_gpu("matmul", "pass"), on_gpu("conv", "pass"), on_gpu("conv", "pass", "cpu")]))
    assert sum("H100" in row for row in shown) == 1
    assert shown[-1] == "  cuda:0 is NVIDIA H100 80GB HBM3"
    few = PLAIN.text(comparison_lines([], [on_gpu("matmul", "pass"), on_gpu("conv", "pass")]))
    assert few[-1] == "  cuda:0 is NVIDIA H100 80GB HBM3"
