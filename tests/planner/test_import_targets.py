"""Import names in the order in which their imports begin."""

from envmedic.compat.installed_requirements import demands
from envmedic.planner import import_targets
from tests.planner.support import dist, environment


def test_what_requires_most_itself_or_through_others_begins_first() -> None:
    found = environment(
        [
            dist("alone", "1"),
            dist("base", "1", imports=("base", "base_tools")),
            dist("circle", "1", "top", "absent"),
            dist("middle", "1", "base"),
            dist("top", "1", "middle", "circle; python_version > '3'"),
        ]
    )
    names = import_targets.every(found.distributions)
    assert names == ("alone", "base", "base_tools", "circle", "middle", "top")
    asked = demands(found, {"python_version": "3.11"})
    ordered = import_targets.in_order((*names, "unknown"), found.distributions, asked)
    assert ordered == ("circle", "top", "middle", "alone", "base", "base_tools", "unknown")
