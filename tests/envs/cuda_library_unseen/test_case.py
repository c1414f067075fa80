"""The library is there and not seen; once the environment is activated, it is."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.envs.cuda_library_unseen.case import build


def test_activation_shows_the_library_to_the_program(tmp_path: Path) -> None:
    case = build(tmp_path / "room")
    healthy = case.envmedic("diagnose", "-p", str(case.prefix), "--json")
    assert healthy.document["verdict"] == "healthy", "nobody has missed it yet"
    done = case.apply("--log", str(case.log()))
    assert done.code == 0, done.told()
    finding = done.document["plan"]["finding"]
    assert (finding["fault"], finding["playbook"]) == ("missing-cuda-library", "cuda-library-unseen")
    activated = subprocess.run(
        ["sh", "-c", f". {case.prefix}/bin/activate && python -B {case.program}"],
        env=case.variables(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert activated.stdout == "cuDNN 90100\n", activated.stderr
