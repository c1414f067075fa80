"""What is run once more when the repaired environment is at its own path."""

from __future__ import annotations

from envmedic.engine.generations.finish import smoke_checks
from envmedic.model.checks import named_check


def test_checks_of_gpu_libraries_are_not_run_on_the_cpu_in_their_place() -> None:
    proofs = [
        named_check(name, role="playbook", cuda_build=True) for name in ("complex-kernels", "torchvision-nms", "import")
    ]
    assert [(check.name, check.gpu) for check in smoke_checks(proofs)] == [
        ("torchvision-nms", False),
        ("import", False),
    ]
    without = named_check("fft", role="playbook", cuda_build=False)
    assert [check.name for check in smoke_checks([without])] == ["fft"]
