"""Remedies for what a text states and no metadata do: a release that is required, a name that is missing."""

from __future__ import annotations

import msgspec
import pytest

from envmedic.errors import NoSolution
from envmedic.model.facts import Environment, Facts, GeneratedModule, Host, TextStatement
from envmedic.planner.moves.hitting_sets import HittingSets
from envmedic.planner.remedies import Remedy, Situation, decide
from tests.diagnosis.helpers import distribution, environment

TRANSFORMERS = msgspec.structs.replace(
    distribution("transformers", "4.44.2", "tokenizers<0.20,>=0.19", "huggingface-hub<1.0,>=0.23.2", "numpy>=1.17"),
    import_names=("transformers",),
)
FAMILY = (
    TRANSFORMERS,
    distribution("tokenizers", "0.19.1"),
    distribution("huggingface-hub", "0.36.2"),
    distribution("numpy", "2.0"),
    distribution("peft", "0.10.0", "transformers", "huggingface-hub>=0.17"),
)
LACKS = TextStatement(module="transformers", name="HybridCache", holds=True, told="")


def remedy(name: str, here: Environment, groups: dict[str, str], *stated: TextStatement) -> Remedy:
    return decide(name, Situation(Facts(host=Host(), environment=here, statements=stated), here, groups))


def installed(*distributions: object) -> Environment:
    return msgspec.structs.replace(environment(), distributions=distributions)


@pytest.mark.parametrize("playbook", ["transformers-family", "unmet-requirement"])
def test_a_name_that_is_missing_is_looked_for_in_a_newer_release(playbook: str) -> None:
    groups = {"module": "transformers", "name": "HybridCache"}
    found = remedy(playbook, installed(*FAMILY), groups, LACKS)
    assert found.install == ("transformers<5,>4.44.2", "huggingface-hub>=0.17", "tokenizers")
    has = msgspec.structs.replace(LACKS, holds=False)
    assert remedy(playbook, installed(*FAMILY), groups, has).empty
    assert remedy(playbook, installed(*FAMILY), groups).empty
    # what others require stays: no release is newer and accepted
    pinned = distribution("pinned", "2.2", "transformers==4.44.2")
    assert remedy(playbook, installed(*FAMILY, pinned), groups, LACKS).empty


def test_a_requirement_of_a_text_is_installed_where_others_accept_it() -> None:
    asked = TextStatement(requirement="accelerate>=0.26.0", holds=True, told="")
    groups = {"requirement": "accelerate>=0.26.0"}
    assert remedy("transformers-family", installed(*FAMILY), groups, asked).install == ("accelerate>=0.26.0",)
    limited = distribution("trainer", "1.0", "accelerate<0.20")
    assert remedy("transformers-family", installed(*FAMILY, limited), groups, asked).empty
    torch = TextStatement(requirement="torch>=2.6", holds=True, told="")
    assert remedy("transformers-family", installed(*FAMILY), {"requirement": "torch>=2.6"}, torch).empty


def test_a_module_that_an_extra_brings_is_installed_as_the_extra_says() -> None:
    asks = distribution("transformers", "4.44.2", 'sentencepiece!=0.1.92,>=0.1.91; extra == "sentencepiece"')
    found = remedy("missing-requirement", installed(asks), {"module": "sentencepiece"})
    assert found.install == ("sentencepiece!=0.1.92,>=0.1.91",)
    with pytest.raises(NoSolution, match="which distribution brings other"):
        remedy("missing-requirement", installed(asks), {"module": "other"})


def test_generated_code_limits_protobuf() -> None:
    old = GeneratedModule(path="board/graph_pb2.py", distribution="board", accepts="<4")
    parts = (distribution("protobuf", "5.29.1"), distribution("board", "2.0", "protobuf>=3.19.6,!=4.24.0"))
    here = msgspec.structs.replace(installed(*parts), generated=(old,))
    assert remedy("protobuf-version", here, {}).install == ("protobuf!=4.24.0,<4,>=3.19.6",)
    newer = GeneratedModule(path="new/graph_pb2.py", distribution=None, accepts=">=5.27.2,<7")
    both = msgspec.structs.replace(here, generated=(old, newer))
    assert remedy("protobuf-version", both, {}).install == ("board>2.0",), "of board alone a newer release may do"


BOXES = msgspec.structs.replace(distribution("boxes", "2.1.5"), import_names=("boxes",))
PACKER = msgspec.structs.replace(distribution("packer", "2.11.3", "boxes>=0.23"), import_names=("packer",))
FOLD = TextStatement(module="boxes", name="fold", holds=True, told="")


def ways(importing: str | None) -> list[tuple[str, ...]]:
    here = installed(BOXES, PACKER)
    facts = Facts(host=Host(), environment=here, statements=(FOLD,))
    found = decide("unmet-requirement", Situation(facts, here, {"module": "boxes", "name": "fold"}, importing))
    assert found.conflicts is not None
    return [item.pins for item in HittingSets(found.conflicts)]


def test_a_name_that_went_is_no_longer_asked_for_by_a_newer_release_of_what_asks() -> None:
    assert ways("packer.draw") == [("boxes<3,>2.1.5,>=0.23",), ("packer>2.11.3",)]
    # where the text names no other package, only the module's own release can help
    assert ways(None) == ways("boxes") == [("boxes<3,>2.1.5,>=0.23",)]


def test_a_requirement_that_is_not_met_says_which_release_has_the_name() -> None:
    limited = msgspec.structs.replace(distribution("packer", "2.11.3", "boxes<2"), import_names=("packer",))
    here = installed(BOXES, limited)
    facts = Facts(host=Host(), environment=here, statements=(FOLD,))
    found = decide("unmet-requirement", Situation(facts, here, {"module": "boxes", "name": "fold"}, "packer"))
    assert found.install == ("boxes<2",)


def test_what_moves_in_place_of_another_is_another_release_also_where_the_other_way_had_no_solution() -> None:
    here = installed(BOXES, PACKER)
    facts = Facts(host=Host(), environment=here, statements=(FOLD,))
    found = decide("unmet-requirement", Situation(facts, here, {"module": "boxes", "name": "fold"}, "packer"))
    assert found.conflicts is not None
    sets = HittingSets(found.conflicts)
    each = iter(sets)
    first = next(each)
    sets.widen(first, sets.binding(first))
    assert next(each).pins == ("packer>2.11.3",)


def test_a_module_that_python_had_comes_from_what_continues_it() -> None:
    here = installed(distribution("pydub", "0.25.1"))
    newer = msgspec.structs.replace(here, interpreter=msgspec.structs.replace(here.interpreter, version="3.13.1"))
    assert remedy("missing-requirement", newer, {"module": "audioop"}).install == ("audioop-lts",)
    older = msgspec.structs.replace(here, interpreter=msgspec.structs.replace(here.interpreter, version="3.12.1"))
    assert remedy("missing-requirement", older, {"module": "audioop"}).empty
    assert remedy("missing-requirement", older, {"module": "distutils"}).install == ("setuptools",)


def test_what_fails_in_its_own_statements_moves_forward_and_then_with_what_it_binds() -> None:
    paper = msgspec.structs.replace(distribution("paper", "4.8"), import_names=("paper",))
    folder = msgspec.structs.replace(distribution("folder", "2.1.1", "paper==4.8", "lids>=1"), import_names=("folder",))
    packer = msgspec.structs.replace(
        distribution("packer", "1.1.0", "folder==2.1.*", "lids>=1"), import_names=("packer",)
    )
    groups = {"caller": "packer", "said": "TypeError: 'type' object is not subscriptable"}
    here = installed(paper, folder, packer, distribution("lids", "3.0"), distribution("other", "1", "folder>=2"))
    found = remedy("unmet-requirement", here, groups).conflicts
    assert found is not None
    ways = [(item.title, item.unseen) for item in (found, *found.instead)]
    assert ways == [("packer<2,>1.1.0", False), ("packer>1.1.0", False), ("packer>1.1.0, folder>=2", False)]


def test_of_two_packages_at_odds_the_one_that_asks_moves_first() -> None:
    reader = msgspec.structs.replace(distribution("reader", "1.2", "hub"), import_names=("reader",))
    hub = msgspec.structs.replace(distribution("hub", "2.1"), import_names=("hub",))
    limited = distribution("other", "1.0", "hub>=1.5")
    groups = {"module": "hub", "name": "gone", "caller": "reader", "asked": "hub"}
    lacks = TextStatement(module="hub", name="gone", holds=True, told="")
    found = remedy("unmet-requirement", installed(reader, hub, limited), groups, lacks).conflicts
    assert found is not None
    ways = [(item.title, item.unseen) for item in (found, *found.instead)]
    assert ways == [
        ("reader<2,>1.2", True),
        ("reader>1.2", True),
        ("hub<3,>2.1,>=1.5", False),
        ("hub<2,>=1,>=1.5", False),
    ]
    # what the user's own code asks for may be in a newer release, else in one of the series before
    own = {"module": "hub", "name": "gone"}
    mine = remedy("unmet-requirement", installed(reader, hub), own, lacks)
    assert mine.install == ("hub<3,>2.1",)
    assert mine.conflicts is not None
    assert [item.title for item in mine.conflicts.instead] == ["hub<2,>=1"]
    assert remedy("unmet-requirement", installed(reader, hub), own).empty, "the files do not say so"
    # nobody knows who refused a call; torch moves with all that is bound to it
    call = {"caller": "reader"}
    alone = remedy("unmet-requirement", installed(reader, hub), call).conflicts
    assert alone is not None
    assert [item.title for item in (alone, *alone.instead)] == ["reader<2,>1.2", "reader>1.2"]
    torch = msgspec.structs.replace(distribution("torch", "2.1"), import_names=("torch",))
    assert remedy("unmet-requirement", installed(torch, hub), {"caller": "torch"}).empty


def test_numpy_goes_back_for_names_only_behind_the_package_that_asks() -> None:
    numpy = msgspec.structs.replace(distribution("numpy", "2.2"), import_names=("numpy",))
    board = msgspec.structs.replace(distribution("board", "2.1", "numpy>=1.12"), import_names=("board",))
    here = msgspec.structs.replace(installed(board, numpy), numpy_one=())
    found = remedy("numpy-abi", here, {"name": "bool8", "caller": "board", "asked": "numpy"}).conflicts
    assert found is not None
    assert [item.title for item in (found, *found.instead)] == ["board<3,>2.1", "board>2.1", "numpy<2,>=1,>=1.12"]
