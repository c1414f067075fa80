"""What the files of an environment say of a call that a text tells was refused."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from envmedic.api.planning.statements import in_clone
from envmedic.model.checks import Confirmation
from envmedic.model.facts import Environment, Facts, Host, TextStatement
from envmedic.model.playbook import Condition
from tests.planner.support import dist, environment

HOLDS = Condition(fact="text.holds", operator="is", value=True)
OLD = "import hinges\n\nclass Opener(hinges.Client):\n    def make(self, lids=None):\n        return hinges.Client(lids=lids)\n"
NEW = "import hinges\n\nclass Opener(hinges.Client):\n    def make(self, lids=None):\n        return hinges.Client()\n"
CLIENT = "class Client:\n    def __init__(self, *, mounts=None): ...\n"


def here(tree: Path, opener: str) -> Environment:
    site = tree / "lib" / "python3.11" / "site-packages"
    for name, text in (("opener", opener), ("hinges", CLIENT)):
        (site / name).mkdir(parents=True)
        (site / name / "__init__.py").write_text(text, encoding="utf-8")
    found = [
        msgspec.structs.replace(
            dist("opener", "1.40", "Hinges>=0.2", "no requirement (at all"), import_names=("opener",)
        ),
        msgspec.structs.replace(dist("hinges", "0.28"), import_names=("hinges",)),
    ]
    made = environment(found)
    interpreter = msgspec.structs.replace(made.interpreter, starts=True)
    return msgspec.structs.replace(
        made, prefix=str(tree), real_prefix=str(tree), site_packages=(str(site),), interpreter=interpreter
    )


def stated(tree: Path, opener: str, **groups: str) -> TextStatement:
    facts = Facts(host=Host(), environment=here(tree, opener))
    asked = Confirmation(playbook="unmet-requirement", when=HOLDS, groups=groups)
    (found,) = in_clone(asked, facts, tree).statements
    return found


@pytest.mark.parametrize(("text", "holds"), [(OLD, True), (NEW, False)])
def test_a_call_is_refused_as_long_as_it_is_made(tmp_path: Path, text: str, holds: bool) -> None:  # noqa: FBT001
    found = stated(tmp_path, text, caller="opener", callee="Client.__init__", argument="lids")
    assert (found.call, found.holds) == ("opener Client.__init__ lids", holds)


def test_what_takes_the_argument_or_is_nowhere_refuses_nothing(tmp_path: Path) -> None:
    text = OLD.replace("lids=lids", "mounts=lids")
    assert stated(tmp_path / "a", text, caller="opener", callee="Client.__init__", argument="mounts").holds is False
    assert stated(tmp_path / "b", OLD, caller="opener", callee="Lid.__init__", argument="lids").holds is None
    assert stated(tmp_path / "c", OLD, caller="gone", callee="Client.__init__", argument="lids").holds is None


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("from hinges import gone\n", True),
        ("from hinges import (\n    lid,\n    gone,\n)\n", True),
        ("try:\n    from hinges import gone\nexcept ImportError:\n    gone = None\n", None),
        ("if new:\n    from hinges import lid\nelse:\n    from hinges import gone\n", None),
        (NEW, False),
    ],
)
def test_a_name_that_nobody_asks_for_any_more_is_not_lacked(tmp_path: Path, text: str, holds: bool | None) -> None:  # noqa: FBT001
    assert stated(tmp_path, text, caller="opener", asked="hinges", module="hinges", name="gone").holds is holds
