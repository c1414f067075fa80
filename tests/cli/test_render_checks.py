"""Tables of checks, where there are many of them."""

from __future__ import annotations

import msgspec

from envmedic.model.checks import Outcome, Verification
from envmedic.render.documents.checks import comparison_lines, outcome_lines, verification_lines
from envmedic.render.style import Style

PLAIN = Style(colour=False)


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
