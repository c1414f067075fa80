"""What holds for every test."""

from __future__ import annotations

import os
import signal

import hypothesis
import pytest

from tests.support.forking import forget_children

hypothesis.settings.register_profile("untimed", deadline=None)  # a busy machine is no failure
hypothesis.settings.load_profile("untimed")

# Started in the background by a shell, or under nohup, everything below would inherit that these are ignored.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
for number in (signal.SIGHUP, signal.SIGQUIT):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.SIG_DFL)


pytest_plugins = ("tests.support.guard",)

ASKED_FOR = {
    "long": (
        "ENVMEDIC_TEST_LONG",
        "tests of minutes, for which others stand in a run of a quarter of an hour",
        "make test-long",
    ),
    "real_torch": ("ENVMEDIC_TEST_REAL", "real torch environments of several GB", "make test-real"),
    "conda": ("ENVMEDIC_TEST_CONDA", "environments made and judged by conda, for minutes", "make test-conda"),
    "notebook": ("ENVMEDIC_TEST_NOTEBOOK", "notebooks in a real Jupyter kernel", "make test-notebook"),
    "site": ("ENVMEDIC_TEST_SITE", "the page for a pasted log in a browser", "make test-site"),
    "projects": ("ENVMEDIC_TEST_PROJECTS", "projects of the real poetry and PDM", "make test-projects"),
}
"""Marker → the variable that asks for such tests, why they have to be asked for, and how."""


def pytest_runtest_setup() -> None:
    """A test answers for its own processes: one before it may have left some that end by themselves."""
    forget_children()


def pytest_configure(config: pytest.Config) -> None:
    """Have what is repaired locked and made again, where that is asked for."""
    if os.environ.get("ENVMEDIC_TEST_LOCKS") == "1":
        from tests.support.round_trip import RoundTrips  # of no use to other runs

        config.pluginmanager.register(RoundTrips(), "round-trips")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What is big or takes long runs only when it is asked for, and else says why not."""
    for marker, (variable, what, target) in ASKED_FOR.items():
        if os.environ.get(variable) == "1":
            continue
        skip = pytest.mark.skip(reason=f"{what}: {variable}=1, as in `{target}`")
        for item in items:
            if item.get_closest_marker(marker):
                item.add_marker(skip)
