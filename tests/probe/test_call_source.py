"""What the text of a package says of calls and names, without its parsing."""

from __future__ import annotations

from pathlib import Path

import pytest

from envmedic.probe.packages.call_source import names, passes, takes
from envmedic.probe.packages.module_source import ModuleFiles

CALLER = """
class Opener:
    def __init__(self, lid=None, *, proxies=None, depth: int = 3) -> None:
        self.depth = depth
        super().__init__(
            lid,
            proxies=proxies,
        )
    size = 3
"""
CALLED = """
class Other:
    def __init__(self, proxies): pass

class Client(Other):
    limit = (1, 2)

    def __init__(
        self, *, base: tuple[int, ...] = (1, (2)), mounts=None
    ) -> None: ...

def close(lid, hinges=("a", "b")): ...
def open_(**more): ...
"""


@pytest.fixture
def files(tmp_path: Path) -> ModuleFiles:
    for name, text in (("opener", CALLER), ("boxes", CALLED)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("")
        (tmp_path / name / "parts.py").write_text(text)
    return ModuleFiles((tmp_path,))


@pytest.mark.parametrize(
    ("argument", "said"), [("proxies", True), ("depth", False), ("size", False), ("lid", False), ("gone", False)]
)
def test_a_default_of_a_parameter_is_no_argument_of_a_call(files: ModuleFiles, argument: str, said: bool) -> None:  # noqa: FBT001
    assert passes(files, "opener", argument) is said


@pytest.mark.parametrize(
    ("called", "argument", "said"),
    [
        ("Client.__init__", "mounts", True),
        ("Client.__init__", "proxies", False),
        ("Other.__init__", "proxies", True),
        ("close", "hinges", True),
        ("close", "lids", False),
        ("open_", "lids", None),
        ("Gone.__init__", "proxies", None),
        ("Client.close", "lid", None),
    ],
)
def test_a_call_is_refused_by_the_function_that_is_named(
    files: ModuleFiles,
    called: str,
    argument: str,
    said: bool | None,  # noqa: FBT001
) -> None:
    assert takes(files, "boxes", called, argument) is said


def test_one_of_several_that_refuses_may_be_the_one_that_did(files: ModuleFiles) -> None:
    (files.sites[0] / "boxes" / "late.py").write_text("class Client:\n    def __init__(self, proxies): ...\n")
    assert takes(files, "boxes", "Client.__init__", "proxies") is False


def test_what_cannot_be_read_is_not_known(files: ModuleFiles) -> None:
    assert passes(files, "nowhere", "proxies") is None
    assert names(files, "opener", "hinges") is False
    assert names(files, "opener", "proxies") is True
    (files.sites[0] / "opener" / "loop.py").symlink_to("loop.py")
    assert names(files, "opener", "hinges") is None
    assert names(files, "opener", "proxies") is True


def test_parentheses_that_never_close_end_with_the_file(files: ModuleFiles) -> None:
    (files.sites[0] / "boxes" / "parts.py").write_text("def close(" + "(" * 100_000)
    assert takes(files, "boxes", "close", "lid") is False
    assert passes(files, "boxes", "lid") is False


def test_a_hostile_file_takes_no_time(files: ModuleFiles) -> None:
    text = "def close(\n" * 200_000 + "class Client:\n def __init__(\n" * 50_000
    (files.sites[0] / "boxes" / "parts.py").write_text(text)
    assert takes(files, "boxes", "close", "lid") is False
    assert takes(files, "boxes", "Client.__init__", "lid") is False
    assert passes(files, "boxes", "lid") is False
