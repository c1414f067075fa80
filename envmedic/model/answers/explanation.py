"""Explanation of a fault or playbook to a reader without prior knowledge."""

from __future__ import annotations

from typing import Final, Literal

from envmedic.model.base import Model
from envmedic.model.registries.faults import Fault

EXPLAIN_SCHEMA: Final = "envmedic.explain/1"


class Sign(Model, frozen=True, kw_only=True):
    """One error text that a playbook knows."""

    signature: str
    """Its id in the playbook."""
    message: str
    """Such a message."""
    meaning: str
    """What it says."""


class Term(Model, frozen=True, kw_only=True):
    """A word of the field that the explanation uses."""

    term: str
    """As it is written."""
    meaning: str
    """In plain words."""


class PlaybookTitle(Model, frozen=True, kw_only=True):
    """A playbook by its id."""

    id: str
    """What ``--playbook`` takes."""
    title: str
    """The fault in one line."""


class Explanation(Model, frozen=True, kw_only=True):
    """The document of ``envmedic explain --json``."""

    schema: Literal["envmedic.explain/1"] = EXPLAIN_SCHEMA
    topic: str
    """The class of fault or the playbook that was asked for."""
    kind: Literal["fault", "playbook"]
    """Which of both it is."""
    fault: Fault | None
    """The class of the fault; null for a playbook on what is no fault of an environment."""
    title: str
    """In one line."""
    what: str
    """What it is."""
    why: str
    """How it comes about."""
    proof: tuple[str, ...] = ()
    """How it is proven, before and after a repair."""
    signs: tuple[Sign, ...] = ()
    """Error texts that it is known by."""
    confirmed_by: tuple[str, ...] = ()
    """What must be observed in the environment and on the host for it to be confirmed."""
    repair: tuple[str, ...] = ()
    """What a repair does, in order."""
    alternatives: tuple[str, ...] = ()
    """Other ways, each with why it is not the first choice."""
    playbooks: tuple[PlaybookTitle, ...] = ()
    """For a class of fault: the playbooks that repair it."""
    terms: tuple[Term, ...] = ()
    """Meanings of the placeholders in braces and of the technical terms above."""
    references: tuple[str, ...] = ()
    """URLs of what it relies on."""
