"""Results of a playbook's tests."""

from __future__ import annotations

from typing import Final, Literal

from envmedic.model.base import Model

PLAYBOOK_TEST_SCHEMA: Final = "envmedic.playbook-test/1"


class Trial(Model, frozen=True, kw_only=True):
    """One thing that was tried with the playbook."""

    about: str
    """What was tried: ``signature ID``, ``log FILE``, ``steps``, ``when``, ``file`` or another playbook's sample."""
    status: Literal["pass", "fail", "note"]
    """`note` is advice: nothing is wrong by itself."""
    told: str
    """How it came out, in one sentence."""


class PlaybookTest(Model, frozen=True, kw_only=True):
    """The document of ``envmedic playbooks test --json``."""

    schema: Literal["envmedic.playbook-test/1"] = PLAYBOOK_TEST_SCHEMA
    playbook: str
    """Its id."""
    path: str
    """Its file."""
    passed: bool
    """Whether no trial failed."""
    trials: tuple[Trial, ...]
    """In the order in which they were made."""
