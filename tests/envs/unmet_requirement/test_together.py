"""What has a solution only together is planned together."""

from __future__ import annotations

from pathlib import Path

from tests.support.native_case import build_native
from tests.support.repairs import pure


def test_what_a_new_release_needs_moves_with_it(tmp_path: Path) -> None:
    directory = tmp_path / "wheels"
    wheels = [
        pure(directory, "web", "1.0", "", requires=("routes<2",)),
        pure(directory, "web", "2.0", "", requires=("routes>=2", "deep>=2")),
        *(pure(directory, f"site{number}", "3.0", "", requires=("routes>=2", "deep")) for number in range(3)),
        pure(directory, "routes", "1.9", ""),
        pure(directory, "routes", "2.1", ""),
        pure(directory, "deep", "1.0", ""),
        pure(directory, "deep", "2.4", ""),
    ]
    names = ["web==1.0", "site0", "site1", "site2", "routes==2.1", "deep==1.0"]
    case = build_native(tmp_path, wheels, names, "import web\n")
    log = tmp_path / "conflict.log"
    log.write_text("web 1.0 requires routes<2, but you have routes 2.1 which is incompatible.\n")
    done = case.envmedic("plan", "-p", str(case.prefix), "--json", "--log", str(log))
    assert done.code == 0, done.told()
    plan = done.document
    assert [(item["name"], item["after"]) for item in plan["changes"]] == [("deep", "2.4"), ("web", "2.0")]
    assert "1 other way has no solution" in plan["choice"]["why"]
    refused = [item["why_not"] for item in plan["alternatives"] if item["title"] == "web!=1.0"]
    assert refused == ["web 2.0 needs deep>=2, but 1.0 is installed"]
