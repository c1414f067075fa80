"""Steps are the same by what they do."""

from __future__ import annotations

import msgspec

from envmedic.api.planning.plan_choice import _repeats  # the rule that ends the repair loop
from envmedic.model.facts import Host, Origin
from envmedic.model.plan import Change, InstalledReference, Plan, Rebuild
from envmedic.planner import steps_key


def rebuild(size: int, **variables: str) -> Rebuild:
    copy = InstalledReference(
        name="ops", version="1.0", owner="pip", metadata_path="lib/ops-1.0.dist-info", size_bytes=size
    )
    return Rebuild(
        distribution=copy, source=Origin(kind="directory", url="/src"), workshop="/build", variables=variables
    )


def test_a_build_is_the_same_one_whatever_the_size_of_the_copy_that_it_replaces() -> None:
    assert steps_key((rebuild(10),)) == steps_key((rebuild(2000),))
    assert steps_key((rebuild(10),)) != steps_key((rebuild(10, FORCE_CUDA="1"),))


def test_a_plan_with_the_same_build_is_not_carried_out_again() -> None:
    change = Change(kind="change", name="ops", before="1.0", after="1.0")
    first = Plan(
        envmedic="1",
        created="",
        prefix="/env",
        real_prefix="/env",
        environment_digest="",
        playbook=None,
        fault=None,
        host=Host(),
        steps=(rebuild(10),),
        changes=(change,),
    )
    again = msgspec.structs.replace(first, steps=(rebuild(2000),))
    assert _repeats(again, (first,))
