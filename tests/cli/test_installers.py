"""``--installer``: one word for wheels, one for conda packages."""

from __future__ import annotations

import pytest

from envmedic.cli.options import installers
from envmedic.cli.parser import build_parser
from envmedic.errors import InputError


def chosen(*words: str) -> tuple[str, str]:
    arguments = build_parser().parse_args(["apply", *(part for word in words for part in ("--installer", word))])
    return installers(arguments.installer or ())


def test_each_side_has_its_own_and_its_usual_one() -> None:
    assert chosen() == ("uv", "rattler")
    assert chosen("pip") == ("pip", "rattler")
    assert chosen("conda") == ("uv", "conda")
    assert chosen("conda", "pip") == ("pip", "conda")
    assert chosen("pip", "pip") == ("pip", "rattler")


def test_two_of_one_side_are_refused() -> None:
    with pytest.raises(InputError, match="--installer rattler and --installer conda"):
        chosen("rattler", "conda")


@pytest.mark.parametrize("word", ["mamba", "micromamba"])
def test_what_nobody_could_try_is_refused_with_the_reason(word: str) -> None:
    with pytest.raises(InputError, match=f"{word} is not used to install: nobody could try yet"):
        chosen(word)


def test_a_variable_may_name_both(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENVMEDIC_INSTALLER", "conda pip")
    assert chosen() == ("pip", "conda")
    assert chosen("uv") == ("uv", "rattler")
