"""Use case ``explain``: the page on a fault or a playbook."""

from __future__ import annotations

from envmedic import explain as pages
from envmedic.api.context.settings import Settings
from envmedic.api.playbooks import find_playbook, is_playbook_file, load_playbooks
from envmedic.model.answers.explanation import Explanation
from envmedic.model.playbook import LoadedPlaybook


def explain(settings: Settings, topic: str, playbooks: tuple[LoadedPlaybook, ...] | None = None) -> Explanation:
    """Return the page on a class of fault, or on a playbook by id or file. Raises InputError for anything else.

    `playbooks` are the known playbooks, by default all.
    """
    playbooks = load_playbooks(settings) if playbooks is None else playbooks
    if is_playbook_file(topic):
        topic = find_playbook(settings, topic).playbook.id
    return pages.explain(topic, playbooks)
