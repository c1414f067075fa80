"""Which releases come for requirements that are not met, and for NumPy."""

from __future__ import annotations

import msgspec
import pytest

from envmedic.errors import NoSolution
from envmedic.model.facts import Distribution, Environment, NumpyModule
from envmedic.planner.moves.hitting_sets import HittingSets
from tests.planner.remedies.helpers import decided
from tests.planner.support import dist, environment


def of(name: str, *installed: Distribution) -> tuple[str, ...]:
    return decided(name, environment(list(installed))).install


def test_what_is_missing_comes_in_a_release_that_all_accept() -> None:
    apps = (dist("app", "1.0", "rich>=12", "tqdm"), dist("tool", "2.0", "rich<14"))
    assert of("missing-requirement", *apps) == ("rich<14,>=12", "tqdm")
    assert of("missing-requirement", *apps, dist("rich", "13.0"), dist("tqdm", "4.0")) == ()


def test_a_numpy_that_is_gone_is_missing_like_any_other() -> None:
    tables = dist("pandas", "3.1", "numpy>=2.0.2")
    assert of("missing-requirement", tables) == ("numpy>=2.0.2",)
    assert of("missing-requirement", tables, dist("numpy", "1.26.4")) == ()


@pytest.mark.parametrize(
    ("module", "name"), [("six", "six"), ("yaml", "pyyaml"), ("typing_extensions", "typing-extensions")]
)
def test_what_is_used_without_being_asked_for_comes_where_its_distribution_is_known(module: str, name: str) -> None:
    app = dist("app", "1.0")
    groups = {"module": module}
    assert decided("missing-requirement", environment([app]), groups=groups).install == (name,)


def test_extras_that_nobody_asked_for_tell_a_release_and_move_nothing() -> None:
    models = dist("models", "5.24", 'pytest<9; extra == "testing"', "tensors")
    tensors = dist("tensors", "0.8", 'pytest>=9; extra == "testing"')
    groups = {"module": "pytest"}
    alone = decided("missing-requirement", environment([tensors]), groups=groups)
    assert alone.install == ("pytest>=9",)
    both = decided("missing-requirement", environment([tensors, models]), groups=groups)
    # nothing requires models, which somebody has chosen: its extra goes first
    assert both.install == ("pytest<9",)
    assert both.conflicts is not None
    assert both.conflicts.violated == ()
    bound = dist("plugin", "1.0", "pytest<8")
    agreeing = decided("missing-requirement", environment([tensors, models, bound]), groups=groups)
    assert agreeing.install == ("pytest<8,<9",)


def test_a_newer_release_comes_of_what_did_not_have_the_module_yet() -> None:
    old, hub = dist("attrs", "21.2.0", imports=("attr",)), dist("hub", "1.0", "attrs>=20")
    groups = {"module": "attrs"}
    assert decided("missing-requirement", environment([old, hub]), groups=groups).install == ("attrs>21.2.0,>=20",)
    own = dist("attrs", "21.2.0", imports=())
    with pytest.raises(NoSolution):  # the files of an editable install are not known
        decided("missing-requirement", environment([own]), groups=groups)
    with pytest.raises(NoSolution):  # whose file is gone: another release is no answer
        decided("missing-requirement", environment([dist("attrs", "21.2.0")]), groups=groups)


def test_another_release_of_what_lacks_something_comes_where_it_is_refused_anyway() -> None:
    hub = dist("hub", "1.0", "httpx", "typer")
    apps = (dist("models", "4.56", "hub<1"), dist("data", "4.1", "hub"), dist("tokens", "0.22", "hub"))
    assert of("missing-requirement", hub, *apps) == ("httpx", "typer", "models>4.56")
    found = decided("missing-requirement", environment([hub, *apps])).conflicts
    assert found is not None
    assert ("hub<1",) in {moves.pins for moves in HittingSets(found)}
    unrelated = (dist("hub", "1.0", "httpx"), dist("web", "1.0", "routes<2"), dist("routes", "2.1"))
    assert of("missing-requirement", *unrelated) == ("httpx",)


def test_wrong_versions_are_replaced_and_torchs_own_helpers_come_first() -> None:
    torch = dist("torch", "2.5.1", "sympy==1.13.1")
    app = dist("app", "1.0", "rich>=12")
    found = of("unmet-requirement", app, torch, dist("rich", "11.0"), dist("sympy", "1.12"))
    assert found == ("sympy==1.13.1", "rich>=12")


def test_where_requirements_exclude_each_other_one_that_states_them_moves_too() -> None:
    apps = (dist("app", "1.0", "rich>=12"), dist("tool", "2.0", "rich<11"))
    assert of("unmet-requirement", *apps, dist("rich", "11.0")) == ("rich<11", "app!=1.0")


def test_a_protobuf_comes_that_all_accept() -> None:
    apps = (dist("app", "1.0", "protobuf<4,>=3.19.6"), dist("tool", "2.0", "protobuf>=3.20.2"))
    assert of("protobuf-version", *apps, dist("protobuf", "5.29.1")) == ("protobuf<4,>=3.19.6,>=3.20.2",)
    assert of("protobuf-version", *apps, dist("protobuf", "3.20.3")) == ()


def test_of_two_libraries_that_exclude_each_other_the_one_that_is_not_satisfied_moves() -> None:
    installed = (
        dist("transformers", "4.40.0", "tokenizers<0.20,>=0.19"),
        dist("peft", "0.13.0", "tokenizers>=0.20"),
        dist("tokenizers", "0.20.3"),
    )
    assert of("transformers-family", *installed) == ("transformers>4.40.0",)
    assert of("transformers-family", installed[0], dist("tokenizers", "0.21.0")) == ("tokenizers<0.20,>=0.19",)


def test_torch_says_which_triton_it_needs() -> None:
    torch = dist("torch", "2.5.1", "triton==3.1.0")
    assert of("triton-version", torch, dist("triton", "3.0.0")) == ("triton==3.1.0",)
    assert of("triton-version", torch, dist("triton", "3.1.0")) == ()
    assert of("triton-version", dist("torch", "2.5.1", "triton==3.1.0", owner="conda"), dist("triton", "3.0.0")) == ()
    assert of("triton-version", dist("six", "1.0")) == ()


def test_the_xformers_for_this_torch_comes() -> None:
    torch = dist("torch", "2.5.1")
    assert of("xformers-build", torch, dist("xformers", "0.0.27", "torch==2.3.1")) == ("xformers==0.0.29.post1",)
    assert of("xformers-build", torch, dist("xformers", "0.0.28.post3", "torch==2.5.1")) == ()
    assert of("xformers-build", torch) == ()
    with pytest.raises(NoSolution, match="No torch is installed here, so no build of xformers"):
        of("xformers-build", dist("xformers", "0.0.27", "torch==2.3.1"))


def test_the_torchcodec_for_this_torch_comes() -> None:
    found = of("torch-companions", dist("torch", "2.5.1"), dist("torchcodec", "0.7.0"))
    assert found == ("torchcodec==0.1.*",)
    assert of("torch-companions", dist("torch", "2.5.1"), dist("torchtext", "0.18.0", "torch>=2.3.0")) == ()
    with pytest.raises(NoSolution, match="No torch is installed here, so no companion"):
        of("torch-companions", dist("torchcodec", "0.7.0"))


def with_numpy(version: str, *installed: Distribution, modules: tuple[NumpyModule, ...] | None) -> Environment:
    found = environment([dist("numpy", version), *installed])
    return msgspec.structs.replace(found, numpy_one=modules)


OLD_MODULE = NumpyModule(distribution="ops", version="1.0", path="lib/ops/_C.so")


def test_a_numpy_comes_that_fits_what_is_compiled_for_it() -> None:
    ops = dist("ops", "1.0", "numpy>=1.21")
    observed = with_numpy("2.1.0", ops, modules=(OLD_MODULE,))
    assert decided("numpy-abi", observed).install == ("numpy<2,>=1.21",)
    assert decided("numpy-abi", with_numpy("2.1.0", ops, modules=())).install == ()
    unmet = with_numpy("2.1.0", dist("numba", "0.58", "numpy<1.27"), modules=())
    assert decided("numpy-abi", unmet).install == ("numpy<1.27",)


def test_what_is_too_old_moves_rather_than_the_numpy_on_which_others_stand() -> None:
    others = [dist(f"lib{number}", "1.0", "numpy>=1.23") for number in range(5)]
    observed = with_numpy("2.1.0", dist("ops", "1.0", "numpy>=1.21"), *others, modules=(OLD_MODULE,))
    assert decided("numpy-abi", observed).install == ("ops>1.0",)


def test_where_something_asks_for_numpy_2_what_is_too_old_is_upgraded_but_never_torch() -> None:
    new = dist("new", "3.0", "numpy>=2")
    observed = with_numpy("2.1.0", dist("ops", "1.0"), new, modules=(OLD_MODULE,))
    assert decided("numpy-abi", observed).install == ("ops>1.0",)
    torch = NumpyModule(distribution="torch", version="2.2.2", path="lib/torch/_C.so")
    assert decided("numpy-abi", with_numpy("2.1.0", new, modules=(torch,))).install == ()


def test_without_a_look_at_the_files_no_numpy_is_chosen() -> None:
    with pytest.raises(NoSolution, match="It is not known which modules here are compiled for NumPy 1"):
        decided("numpy-abi", with_numpy("2.1.0", modules=None))
    assert decided("numpy-abi", environment([dist("six", "1.0")])).install == ()
