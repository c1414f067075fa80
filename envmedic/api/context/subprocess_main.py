"""Main program of the child process that `subprocess_probe` starts; no module imports it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import msgspec

from envmedic.api.context.observation import observe, observe_clone
from envmedic.api.context.settings import Settings
from envmedic.api.context.subprocess_probe import Reply, Request, Trouble
from envmedic.api.diagnosis import diagnose
from envmedic.errors import EnvmedicError, damaged_byte_code, exhausted, storage
from envmedic.model.base import to_json
from envmedic.model.events import EventStream


def main(answer: int) -> None:
    """Answer the request on standard input, as one line on the descriptor `answer`."""
    request = msgspec.json.decode(sys.stdin.buffer.read(), type=Request)
    settings = Settings(
        stream=EventStream([]),
        host_file=request.host_file,
        deep=request.deep,
        unnamed=request.unnamed,
        playbook_files=request.playbook_files,
    )
    try:
        reply = _reply(request, settings)
    except Exception as error:
        known = error if isinstance(error, EnvmedicError) else exhausted(error) or storage(error)
        known = known or damaged_byte_code(error)
        if known is None:
            raise
        trouble = Trouble(
            code=known.code, summary=known.summary, cause=known.cause, hint=known.hint, details=known.details
        )
        reply = Reply(trouble=trouble)
    with os.fdopen(answer, "wb") as pipe:
        # the parent takes whole lines only, so a process killed while writing gives no answer
        pipe.write(to_json(reply, indent=0).encode() + b"\n")


def _reply(request: Request, settings: Settings) -> Reply:
    prefix = Path(request.prefix)
    if request.tree is not None:
        return Reply(environment=observe_clone(settings, Path(request.tree), prefix))
    if request.wanted == "facts":
        return Reply(facts=observe(settings, prefix))
    return Reply(diagnosis=diagnose(settings, prefix, [])[0])
