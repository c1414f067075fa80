"""Wheels for another platform or Python, told by their own tags."""

from __future__ import annotations

import msgspec
import pytest

from envmedic.analysis.packages.foreign_wheels import foreign
from envmedic.diagnosis.vocabulary import derive
from envmedic.model.facts import Facts, Host
from tests.diagnosis.helpers import distribution, environment

GNU, MUSL = "cpython-311-x86_64-linux-gnu", "cpython-311-x86_64-linux-musl"


def told(*tags: str, soabi: str = GNU, version: str = "3.11.7", owner: str = "uv") -> list[str]:
    here = environment()
    python = msgspec.structs.replace(
        here.interpreter, version=version, implementation="cpython", soabi=soabi, platform_tag="linux_x86_64"
    )
    item = msgspec.structs.replace(distribution("grid", "1.5"), tags=tags, owner=owner)
    return [why for _, why in foreign(msgspec.structs.replace(here, interpreter=python, distributions=(item,)))]


@pytest.mark.parametrize(
    "tags",
    [
        ("cp311-cp311-manylinux_2_17_aarch64", "cp311-cp311-manylinux2014_aarch64"),
        ("cp311-cp311-musllinux_1_2_x86_64",),
        ("cp311-cp311-macosx_11_0_arm64",),
        ("cp311-cp311-win_amd64",),
        ("cp312-cp312-manylinux_2_28_x86_64",),
        ("cp310-cp310-linux_x86_64",),
        ("cp312-abi3-manylinux_2_28_x86_64",),
        ("cp311-cp311t-manylinux_2_28_x86_64",),
    ],
)
def test_what_python_does_not_take_is_foreign(tags: tuple[str, ...]) -> None:
    (why,) = told(*tags)
    assert why.startswith("for ")


@pytest.mark.parametrize(
    "tags",
    [
        (),
        ("py3-none-any",),
        ("py2.py3-none-manylinux1_x86_64",),
        ("cp311-cp311-linux_x86_64",),
        ("cp38-abi3-manylinux_2_17_x86_64",),
        ("cp37-none-any",),
        # one that fits is enough
        ("cp312-cp312-manylinux_2_28_x86_64", "cp311-cp311-manylinux_2_28_x86_64"),
    ],
)
def test_what_python_takes_is_not(tags: tuple[str, ...]) -> None:
    assert told(*tags) == []


def test_the_interpreter_decides() -> None:
    assert told("cp311-cp311-musllinux_1_2_x86_64", soabi=MUSL) == []
    assert told("cp311-cp311-manylinux_2_17_x86_64", soabi=MUSL) == ["for manylinux_2_17_x86_64"]
    free = "cpython-313t-x86_64-linux-gnu"
    assert told("cp313-cp313t-manylinux_2_28_x86_64", soabi=free, version="3.13.0") == []
    assert told("cp313-cp313-manylinux_2_28_x86_64", soabi=free, version="3.13.0") == ["for cp313"]
    # conda's records name the platform
    assert told("cp310-cp310-linux_x86_64", owner="conda") == []


def test_they_are_to_be_installed_again() -> None:
    here = environment()
    python = msgspec.structs.replace(here.interpreter, implementation="cpython", platform_tag="linux_x86_64")
    item = msgspec.structs.replace(distribution("grid", "1.5"), tags=("cp311-cp311-win_amd64",))
    found = derive(
        Facts(host=Host(), environment=msgspec.structs.replace(here, interpreter=python, distributions=(item,)))
    )
    assert found["files.foreign"] == ("grid==1.5",)
    assert found["files.foreign-tags"] == ("grid 1.5: for win_amd64",)
