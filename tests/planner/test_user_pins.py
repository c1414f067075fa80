"""The user's limits on versions: what a change does not keep of them, and what would have to stand in their place."""

from __future__ import annotations

import pytest

from envmedic.api.planning.pin_limits import PinLimits
from envmedic.errors import NoSolution, PinnedVersions
from envmedic.model.pins import LiftedPin, PinKind, UserPin
from envmedic.planner import user_pins


def pin(requirement: str, line: int = 1, kind: PinKind = "constraint") -> UserPin:
    return UserPin(requirement=requirement, source=f"/shop/held.txt:{line}", kind=kind)


@pytest.mark.parametrize(
    ("stated", "version", "instead"),
    [
        ("numpy<2", "2.1.3", "numpy<=2.1.3"),
        ("numpy<2,>=1.20", "2.1.3", "numpy<=2.1.3,>=1.20"),
        ("numpy>2.2,!=2.3", "2.1.3", "numpy>=2.1.3,!=2.3"),
        ("numpy==1.26.4", "2.1.3", "numpy==2.1.3"),
        ("numpy==1.26.*", "2.1.3", "numpy==2.1.*"),
        ("numpy~=1.26", "2.1.3", "numpy~=2.1"),
        ("numpy!=2.1.3", "2.1.3", "numpy"),
        ("numpy===1.26.4", "2.1.3", "numpy===2.1.3"),
        ("torch==2.5.1", "2.6.0+cu124", "torch==2.6.0"),
        ("torch==2.5.1+cu121", "2.6.0+cu124", "torch==2.6.0+cu124"),
        ("torch<2.5", "2.6.0rc1", "torch<=2.6.0rc1"),
    ],
)
def test_what_would_have_to_stand_in_the_place_of_a_pin(stated: str, version: str, instead: str) -> None:
    assert user_pins.agreeing(stated, version) == instead


def test_only_pins_that_a_change_does_not_keep_are_lifted() -> None:
    pins = (
        pin("numpy<2"),
        pin("torch==2.5.1", 2),
        pin("six", 3, "requirement"),
        pin("attrs<20", 4),
        pin("idna==3", 5, "lock"),
    )
    after = {"numpy": "2.1.3", "torch": "2.5.1+cu124", "six": None, "attrs": None, "idna": "2"}
    assert list(user_pins.lifted(pins, after)) == [
        LiftedPin(pin="numpy<2", source="/shop/held.txt:1", kind="constraint", instead="numpy<=2.1.3"),
        LiftedPin(pin="six", source="/shop/held.txt:3", kind="requirement"),
    ]


def test_a_lock_goes_first_then_the_pins_in_the_way_and_all_where_none_is_named() -> None:
    held = (pin("numpy<2"), pin("numpy==1.26.4", 2, "lock"), pin("torch<2.5", 3))
    limits = PinLimits(held)
    stated = limits.after(NoSolution("no"), lifts=False)
    assert stated == PinLimits((held[0], held[2]))
    assert stated.after(NoSolution("no"), lifts=False) is None
    named = PinnedVersions("no", pins=(("/shop/held.txt:1", "numpy<2"), ("/env/.condarc:2", "mkl 2023")))
    fewer = stated.after(named, lifts=True)
    assert fewer == PinLimits((held[2],), (held[0],), (("/env/.condarc:2", "mkl 2023"),))
    assert fewer.after(named, lifts=True) is None
    none = fewer.after(NoSolution("no"), lifts=True)
    assert none == PinLimits((), (held[0], held[2]), fewer.condas)
    assert none.after(NoSolution("no"), lifts=True) is None
