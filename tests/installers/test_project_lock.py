"""The files that the locks of projects state."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from envmedic.errors import InstallerError
from envmedic.installers.index import configuration
from envmedic.installers.resolution import project_lock
from envmedic.installers.resolution.resolve import candidates
from envmedic.installers.wheels.wheel_files import tag_ranks
from envmedic.model.facts import Environment, Interpreter
from envmedic.model.pins import Project, ProjectIndex, ProjectTool

RIGHT, OTHER = "a" * 64, "b" * 64
POETRY = f"""\
[[package]]
name = "Numpy"
version = "1.26.4"
files = [
    {{file = "numpy-1.26.4-py3-none-any.whl", hash = "sha256:{RIGHT}"}},
    {{file = "numpy-1.26.4.tar.gz", hash = "sha256:{OTHER}"}},
]
"""
OLD_POETRY = f"""\
[[package]]
name = "numpy"
version = "1.26.4"
[metadata.files]
numpy = [{{file = "numpy-1.26.4-py3-none-any.whl", hash = "sha256:{RIGHT}"}}]
"""
UV = f"""\
[[package]]
name = "numpy"
version = "1.26.4"
source = {{ registry = "https://example.org/simple" }}
wheels = [
    {{ url = "https://user:secret@example.org/numpy-1.26.4-cp27-none-any.whl", hash = "sha256:{OTHER}", size = 1 }},
    {{ url = "https://user:secret@example.org/numpy-1.26.4-py3-none-any.whl", hash = "sha256:{RIGHT}", size = 5 }},
]
"""
PYTHON = Interpreter(path="/env/bin/python", starts=True, version="3.11.4", soabi="cpython-311-x86_64-linux-gnu")


def environment(folder: Path, tool: ProjectTool, text: str, *, sync: tuple[str, ...] = ("sync",)) -> Environment:
    name = f"{tool}.lock"
    (folder / name).write_text(text, encoding="utf-8")
    project = Project(tool=tool, folder=str(folder), lock=name, sync=sync)
    return Environment(
        prefix="/env", real_prefix="/env", kind="venv", interpreter=PYTHON, site_packages=(), project=project
    )


def offered(*digests: str) -> dict[str, object]:
    wheels = [
        {"url": f"https://mirror.example/{digest[0]}/numpy-1.26.4-py3-none-any.whl", "hashes": {"sha256": digest}}
        for digest in digests
    ]
    return {"packages": [{"name": "numpy", "version": "1.26.4", "wheels": wheels}]}


@pytest.mark.parametrize(("tool", "text"), [("poetry", POETRY), ("poetry", OLD_POETRY), ("pdm", POETRY)])
def test_of_the_indexes_files_that_of_the_lock_is_taken(tmp_path: Path, tool: ProjectTool, text: str) -> None:
    locked = project_lock.wheels(environment(tmp_path, tool, text))
    (found,) = candidates(offered(OTHER, RIGHT), tag_ranks(PYTHON), locked)
    assert (found.sha256, found.url) == (RIGHT, "https://mirror.example/a/numpy-1.26.4-py3-none-any.whl")


def test_no_other_file_stands_in_for_that_of_the_lock(tmp_path: Path) -> None:
    locked = project_lock.wheels(environment(tmp_path, "poetry", POETRY))
    with pytest.raises(InstallerError, match=r"numpy 1\.26\.4 that the project has locked"):
        candidates(offered(OTHER), tag_ranks(PYTHON), locked)


def test_a_lock_of_uv_says_where_its_file_is(tmp_path: Path) -> None:
    locked = project_lock.wheels(environment(tmp_path, "uv", UV))
    (found,) = candidates(offered(OTHER), tag_ranks(PYTHON), locked)
    assert (found.sha256, found.size_bytes) == (RIGHT, 5)
    assert found.url == "https://example.org/numpy-1.26.4-py3-none-any.whl"


def test_another_release_is_not_bound(tmp_path: Path) -> None:
    locked = project_lock.wheels(environment(tmp_path, "uv", UV.replace("1.26.4", "1.26.3")))
    (found,) = candidates(offered(OTHER), tag_ranks(PYTHON), locked)
    assert found.sha256 == OTHER


def test_a_lock_that_no_sync_follows_here_binds_nothing(tmp_path: Path) -> None:
    whole = environment(tmp_path, "uv", UV, sync=())
    assert project_lock.wheels(whole) == {}
    assert project_lock.wheels(msgspec.structs.replace(whole, project=None)) == {}


@pytest.mark.parametrize(
    "text", ["", "[[package", "package = 3", "[[package]]\nname = 3", "[[package]]\nname='a'\nversion='1'\nwheels=[3]"]
)
def test_a_damaged_lock_has_no_files(tmp_path: Path, text: str) -> None:
    assert project_lock.wheels(environment(tmp_path, "uv", text)) == {}


@pytest.mark.parametrize(
    ("tool", "first", "index_url", "extra"),
    [
        ("poetry", ProjectIndex(name="a", url="https://a/simple", default=True), "https://me:pw@a/simple", ("https://b/simple",)),
        ("pdm", ProjectIndex(name="a", url="https://a/simple"), "https://own/simple", ("https://me:pw@a/simple", "https://b/simple", "https://more/simple")),
        ("uv", ProjectIndex(name="a", url="https://a/simple", default=True), "https://own/simple", ("https://more/simple",)),
    ],
)  # fmt: skip
def test_the_sources_of_poetry_and_pdm_are_asked_as_they_ask_them(
    tmp_path: Path, tool: ProjectTool, first: ProjectIndex, index_url: str, extra: tuple[str, ...]
) -> None:
    environ = {"PIP_CONFIG_FILE": "/dev/null", "PIP_INDEX_URL": "https://own/simple", "HOME": str(tmp_path)}
    environ |= {"PIP_EXTRA_INDEX_URL": "https://more/simple", "UV_NO_CONFIG": "1"}
    logins = {"POETRY_HTTP_BASIC_A_USERNAME": "me", "POETRY_HTTP_BASIC_A_PASSWORD": "pw"}
    made = environment(tmp_path, tool, UV)
    assert made.project is not None
    explicit = ProjectIndex(name="c", url="https://c/simple", explicit=True)
    listed = (first, ProjectIndex(name="b", url="https://b/simple"), explicit)
    project = msgspec.structs.replace(made.project, indexes=listed)
    made = msgspec.structs.replace(made, project=project)
    found = project_lock.configured(made, configuration.read(None, environ), logins).pip
    assert (found.index_url, found.extra_index_urls) == (index_url, extra)
