"""A snapshot: a clone of the environment that is kept as a generation, without any change of the environment.

The clone is never exchanged, so nothing that runs from the environment notices. It takes the place that an old tree has
after a repair, and the marker that is written at the prefix makes it a generation: a kill before that leaves a clone to
be dropped, a kill after it a transaction to be ended.
"""

from __future__ import annotations

from envmedic.engine.fs.exchange import sync_filesystem
from envmedic.engine.generations.late_writes import changed_meanwhile
from envmedic.engine.store import marker
from envmedic.engine.transaction.repair_stages import Run
from envmedic.tree import fingerprint as tree


def take(run: Run) -> None:
    """Clone the environment and mark it. Raises EnvironmentBusy if it changed meanwhile, PreflightError, OSError."""
    session, transaction, directory = run.session, run.transaction, run.transaction.directory
    run.make_clone(run)
    with session.stage("fingerprint"):
        tree.fingerprint(directory.tree).save(directory.fingerprint)
        now = tree.fingerprint(session.prefix)
        changed = tree.compare(run.original, now).names
        if changed:
            raise changed_meanwhile(session.prefix, changed, "while its snapshot was taken")
        now.save(directory.live_fingerprint)
        transaction.note(after=transaction.record.before, outcome="snapshot")
        transaction.save()
        sync_filesystem(directory.path)
    session.point("synced")
    session.interruption.commit()
    marker.write_live(session.prefix, directory.transaction)
    session.point("marked")
