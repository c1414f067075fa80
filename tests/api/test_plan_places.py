"""A plan of a stranger: its digest is right, and it names places that are not envmedic's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from envmedic import planner
from envmedic.api.repair import read_plan
from envmedic.errors import InputError
from envmedic.installers.wheels import download_cache
from envmedic.model.base import to_json
from envmedic.model.conda import CondaArtifact, CondaChange, CondaReference
from envmedic.model.facts import Host, Origin
from envmedic.model.plan import Artifact, Install, InstalledReference, Pin, Plan, Rebuild, Step

SHA = "0" * 64
WHEEL = "demo-1.0-py3-none-any.whl"


def install(*, filename: str = WHEEL, sha256: str = SHA, local_path: str | None = None) -> Install:
    where = local_path if local_path is not None else os.fspath(download_cache.path_of(sha256, filename))
    url = "https://example.org/x.whl"
    return Install(
        artifacts=(Artifact(name="demo", version="1.0", filename=filename, url=url, sha256=sha256, local_path=where),)
    )


def rebuild(workshop: Path) -> Rebuild:
    reference = InstalledReference(name="demo", version="1", owner="pip", metadata_path="x")
    return Rebuild(distribution=reference, source=Origin(kind="index"), workshop=os.fspath(workshop))


def conda(record: str, filename: str = "a-1-0.conda") -> CondaChange:
    gone = CondaReference(name="a", version="1", build="0", record=record)
    new = CondaArtifact(
        name="a",
        version="1",
        build="0",
        channel="c",
        subdir="noarch",
        filename=filename,
        url="https://c/a.conda",
        sha256=SHA,
    )
    return CondaChange(remove=(gone,), install=(new,))


def written(tmp_path: Path, step: Step) -> Path:
    made = Plan(
        envmedic="0", created="2026-01-01T00:00:00Z", prefix=str(tmp_path / "env"), real_prefix=str(tmp_path / "env"),
        environment_digest="x", playbook=None, fault=None, host=Host(), steps=(step,),
    )  # fmt: skip
    file = tmp_path / "plan.json"
    file.write_text(to_json(planner.named(made)), encoding="utf-8")
    return file


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "env").mkdir()


def test_a_plan_of_ones_own_is_read(tmp_path: Path) -> None:
    for step in (
        install(),
        rebuild(tmp_path / ".envmedic" / "build" / "env" / "demo"),
        conda("conda-meta/a-1-0.json"),
        Pin(constraints=("numpy<2",)),
    ):
        assert read_plan(written(tmp_path, step)).steps == (step,)


def hostile(tmp_path: Path) -> list[Step]:
    home = str(tmp_path / "home")
    return [
        install(local_path=f"{home}/.bashrc"),
        install(filename="../../../../home/.bashrc"),
        install(filename=".."),
        install(filename="-rf.whl"),
        install(sha256="../../../../home"),
        rebuild(tmp_path / "home"),
        rebuild(tmp_path / ".envmedic"),
        rebuild(tmp_path / ".envmedic" / "build" / "env" / ".." / ".." / ".." / "home"),
        conda("../home/.bashrc"),
        conda("conda-meta/../../home/user.json"),
        conda("conda-meta/a.json", filename="../../x.conda"),
        Pin(constraints=("numpy<2\n--index-url https://evil.example",)),
    ]


@pytest.mark.parametrize("number", range(12))
def test_a_plan_that_names_other_places_is_refused(tmp_path: Path, number: int) -> None:
    with pytest.raises(InputError, match="none of envmedic's own"):
        read_plan(written(tmp_path, hostile(tmp_path)[number]))
