"""What the repair of a diagnosis would change, told with it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from envmedic.model.findings import Diagnosis
from envmedic.model.playbook import LoadedPlaybook


def with_outlook(diagnosis: Diagnosis, playbooks: Sequence[LoadedPlaybook]) -> Diagnosis:
    """Return `diagnosis` with what the repair of its best finding would change; as it is where nothing is repaired."""
    best = diagnosis.findings[0] if diagnosis.findings else None
    named = best is not None and best.playbook is not None and best.confirmed is not False and not best.advice
    if best is None or not named or diagnosis.facts is None or diagnosis.verdict != "env":
        return diagnosis
    loaded = next((item for item in playbooks if item.playbook.id == best.playbook), None)
    if loaded is None:
        return diagnosis
    from envmedic.diagnosis.vocabulary import derive
    from envmedic.planner.moves.outlook import outlook

    found = outlook(diagnosis.facts, best, loaded, derive(diagnosis.facts))
    return msgspec.structs.replace(diagnosis, repair=found)
