"""The use cases. CLI and terminal UI call these and nothing below them.

Each is imported where it is first used: a diagnosis needs neither planner nor engine, and would spend a third of its
time on loading them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from envmedic.api.compatibility import check
    from envmedic.api.context.observation import observe
    from envmedic.api.context.settings import TORCH_INDEX, NamedTarget, RepairRequest, Settings
    from envmedic.api.context.subprocess_probe import diagnose_apart
    from envmedic.api.context.target import find_prefix
    from envmedic.api.diagnosis import diagnose
    from envmedic.api.environments import describe_environment, list_environments
    from envmedic.api.explanation import explain
    from envmedic.api.fetching import fetch
    from envmedic.api.generations import (
        AcceptLoss,
        UndoOrRedo,
        difference,
        exit_code,
        history,
        prunable,
        prune,
        recover,
        redo,
        undo,
    )
    from envmedic.api.guarding import guard
    from envmedic.api.locking.creation import NewPrefix, create
    from envmedic.api.locking.locks import (
        default_format,
        lock,
        lock_files,
        lock_for,
        lock_repair,
        require_folder,
        require_platforms,
        write_lock,
    )
    from envmedic.api.playbook_trial import try_playbook
    from envmedic.api.playbooks import (
        PlaybookSurvey,
        copy_playbook,
        is_playbook_file,
        list_playbooks,
        own_playbook_files,
        playbook_schema,
        show_playbook,
        survey_playbooks,
        validate_playbooks,
    )
    from envmedic.api.repair import (
        Confirm,
        Prepared,
        apply,
        apply_plan,
        carry_out,
        means,
        plan,
        prepare,
        read_plan,
    )
    from envmedic.api.verification import verify, verify_lock

__all__ = [
    "TORCH_INDEX",
    "AcceptLoss",
    "Confirm",
    "NamedTarget",
    "NewPrefix",
    "PlaybookSurvey",
    "Prepared",
    "RepairRequest",
    "Settings",
    "UndoOrRedo",
    "apply",
    "apply_plan",
    "carry_out",
    "check",
    "copy_playbook",
    "create",
    "default_format",
    "describe_environment",
    "diagnose",
    "diagnose_apart",
    "difference",
    "exit_code",
    "explain",
    "fetch",
    "find_prefix",
    "guard",
    "history",
    "is_playbook_file",
    "list_environments",
    "list_playbooks",
    "lock",
    "lock_files",
    "lock_for",
    "lock_repair",
    "means",
    "observe",
    "own_playbook_files",
    "plan",
    "playbook_schema",
    "prepare",
    "prunable",
    "prune",
    "read_plan",
    "recover",
    "redo",
    "require_folder",
    "require_platforms",
    "show_playbook",
    "survey_playbooks",
    "try_playbook",
    "undo",
    "validate_playbooks",
    "verify",
    "verify_lock",
    "write_lock",
]

_HOMES = {
    "AcceptLoss": "generations",
    "Confirm": "repair",
    "NewPrefix": "locking.creation",
    "Prepared": "repair",
    "Settings": "context.settings",
    "PlaybookSurvey": "playbooks",
    "TORCH_INDEX": "context.settings",
    "NamedTarget": "context.settings",
    "UndoOrRedo": "generations",
    "RepairRequest": "context.settings",
    "apply": "repair",
    "apply_plan": "repair",
    "carry_out": "repair",
    "check": "compatibility",
    "copy_playbook": "playbooks",
    "create": "locking.creation",
    "default_format": "locking.locks",
    "describe_environment": "environments",
    "diagnose": "diagnosis",
    "diagnose_apart": "context.subprocess_probe",
    "difference": "generations",
    "exit_code": "generations",
    "explain": "explanation",
    "fetch": "fetching",
    "find_prefix": "context.target",
    "guard": "guarding",
    "history": "generations",
    "is_playbook_file": "playbooks",
    "list_environments": "environments",
    "list_playbooks": "playbooks",
    "lock": "locking.locks",
    "lock_files": "locking.locks",
    "lock_for": "locking.locks",
    "lock_repair": "locking.locks",
    "means": "repair",
    "observe": "context.observation",
    "own_playbook_files": "playbooks",
    "plan": "repair",
    "playbook_schema": "playbooks",
    "prepare": "repair",
    "prunable": "generations",
    "prune": "generations",
    "read_plan": "repair",
    "recover": "generations",
    "redo": "generations",
    "require_folder": "locking.locks",
    "require_platforms": "locking.locks",
    "show_playbook": "playbooks",
    "survey_playbooks": "playbooks",
    "try_playbook": "playbook_trial",
    "undo": "generations",
    "validate_playbooks": "playbooks",
    "verify": "verification",
    "verify_lock": "verification",
    "write_lock": "locking.locks",
}
"""Module of each use case."""


def __getattr__(name: str) -> object:
    """The use case of that name (PEP 562)."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)
