"""Editable installs whose source is gone: what brings them back is said, where their module is missing and without a text."""

from __future__ import annotations

import msgspec
import pytest

from envmedic.diagnosis.findings import diagnose
from envmedic.model.facts import Defect, Facts
from envmedic.model.findings import Diagnosis
from envmedic.model.pins import Project, ProjectSource
from envmedic.playbook.matching.match import read_text
from envmedic.render.documents.diagnosis import next_command
from tests.diagnosis.helpers import HOST, environment
from tests.diagnosis.test_confirmation import shipped
from tests.planner.support import dist

LOG = b"ModuleNotFoundError: No module named 'shop_kit'"
LOST = Defect(
    kind="source-gone", path="x", distribution="shop-kit", detail="its source /w/libs/kit is gone", names="/w/libs/kit"
)
UV = Project(
    tool="uv", folder="/w/app", manifest="pyproject.toml", lock="uv.lock", sync=("uv", "sync"),
    sources=(ProjectSource(name="shop-kit", kind="path", value="../libs/kit"),),
)  # fmt: skip
POETRY = Project(
    tool="poetry", folder="/w/app", manifest="pyproject.toml", lock="poetry.lock", sync=("poetry", "install")
)


def diagnosed(*defects: Defect, project: Project | None = None, text: bytes | None = LOG) -> Diagnosis:
    playbooks = shipped("lost-source", "missing-requirement")
    installed = (dist("shop-kit", "1.0", imports=()),)
    here = msgspec.structs.replace(environment(), distributions=installed, defects=defects, project=project)
    lines = [text] if text is not None else []
    log = "log" if text is not None else None
    return diagnose(read_text(lines, playbooks), Facts(host=HOST, environment=here), playbooks, prefix="/env", log=log)


FOUND = msgspec.structs.replace(LOST, found="/w/packages/kit")


THERE = "/w/packages/kit has a project of that name: if it is the one, "
BACK = "Bring the directory back, or "
INSTALL = "envmedic uv -p /env pip install -e"
WRITE = "in /w/app/pyproject.toml instead of the former path, then"


@pytest.mark.parametrize(
    ("lost", "project", "says"),
    [
        (FOUND, None, f"{THERE}`{INSTALL} /w/packages/kit`"),
        (LOST, None, f"{BACK}install it from where it is: `{INSTALL} DIRECTORY`"),
        (FOUND, UV, f"{THERE}write ../packages/kit {WRITE} `uv sync`"),
        (LOST, POETRY, f"{BACK}write its new path {WRITE} `poetry lock && poetry install`"),
    ],
)
def test_the_missing_module_is_traced_to_the_source_that_is_gone(
    lost: Defect, project: Project | None, says: str
) -> None:
    found = diagnosed(lost, project=project)
    assert (found.verdict, found.findings[0].playbook) == ("env", "lost-source")
    assert found.findings[0].advice[0] == says
    assert [item.playbook for item in found.findings].count("lost-source") == 1
    assert next_command(found) == ""
    latent = diagnosed(lost, project=project, text=None)
    assert (latent.findings[0].latent, latent.findings[0].advice, next_command(latent)) == (True, (says,), "")


def test_a_missing_module_alone_says_nothing_of_sources() -> None:
    moved = msgspec.structs.replace(LOST, now="/w/new/kit")
    for found in (diagnosed(), diagnosed(moved), diagnosed(LOST, text=LOG.replace(b"shop_kit", b"other"))):
        assert "lost-source" not in {item.playbook for item in found.findings if not item.latent}
