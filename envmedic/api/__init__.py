"""The use cases. CLI and terminal UI call these and nothing below them."""

from __future__ import annotations

from envmedic.api.compatibility import check
from envmedic.api.diagnosis import diagnose
from envmedic.api.explanation import explain
from envmedic.api.generations import AcceptLoss, Travel, find_prefix, history, prune, recover, redo, undo
from envmedic.api.observation import observe
from envmedic.api.playbooks import is_playbook_file, list_playbooks, playbook_schema, show_playbook, validate_playbooks
from envmedic.api.repair import Confirm, apply, apply_plan, exit_code, plan, read_plan
from envmedic.api.settings import TORCH_INDEX, Settings, Target, Wish
from envmedic.api.verification import verify

__all__ = [
    "TORCH_INDEX",
    "AcceptLoss",
    "Confirm",
    "Settings",
    "Target",
    "Travel",
    "Wish",
    "apply",
    "apply_plan",
    "check",
    "diagnose",
    "exit_code",
    "explain",
    "find_prefix",
    "history",
    "is_playbook_file",
    "list_playbooks",
    "observe",
    "plan",
    "playbook_schema",
    "prune",
    "read_plan",
    "recover",
    "redo",
    "show_playbook",
    "undo",
    "validate_playbooks",
    "verify",
]
