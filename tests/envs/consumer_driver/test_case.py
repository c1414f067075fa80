"""A CuPy for CUDA 13 is replaced by the same one for CUDA 12 where the driver serves no more; the plan says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import consumers
from tests.support.cuda_family import host_file
from tests.support.wheels import make_wheel


@pytest.mark.parametrize(("driver", "code"), [("570.86.10", 0), ("390.48", 1)])
def test_the_build_that_the_driver_serves_is_planned(tmp_path: Path, driver: str, code: int) -> None:
    directory = tmp_path / "wheels"
    wheels = [
        make_wheel(directory, f"cupy-cuda{number}x", "14.2.0", files={f"cupy/for{number}.py": ""})
        for number in (12, 13)
    ]
    wheels.append(consumers.libraries(directory, "13"))
    case = consumers.build(tmp_path, wheels, ["cupy-cuda13x", "every-library-cu13"], "raise SystemExit(1)")
    host = host_file(tmp_path, driver_version=driver)
    done = case.envmedic("plan", "-p", str(case.prefix), "--host", host, "--json")
    assert done.code == code, done.told()
    if code == 0:
        assert done.document["playbook"] == "consumer-driver"
        changes = [(item["name"], item["before"], item["after"]) for item in done.document["changes"]]
        assert changes == [("cupy-cuda13x", "14.2.0", None), ("cupy-cuda12x", None, "14.2.0")]
    else:
        assert "No build for an older CUDA release" in done.told()
        assert "Upgrade the driver" in done.told()
