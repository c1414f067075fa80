"""The helper process: ``run.py DESCRIPTOR [REQUEST]``.

The request is a JSON object, from the file REQUEST or else from standard input; the answer is one line of JSON on
DESCRIPTOR, or behind `MARK` on standard output where DESCRIPTOR is ``-``. Its interpreter is not ended in the usual
way: py-rattler 0.28 crashes in some of those ends ("PyGILState_Release … finalizing"), with its work done.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from pathlib import Path
from typing import Any

MARK = "envmedic-answer "


def main() -> None:
    """Carry the request out, write the answer, and exit without finalisation."""
    where, *given = sys.argv[1:]
    try:
        answer = _do(json.loads(Path(given[0]).read_bytes() if given else sys.stdin.buffer.read()))
    except Exception as error:  # noqa: BLE001  # any failure must become an answer
        answer = {"failed": f"{type(error).__name__}: {error}", "trace": traceback.format_exc()}
        envmedic = sys.modules.get("envmedic")
        answer["byte_code"] = None if envmedic is None else envmedic.damaged_byte_code(error)
    # A descriptor of its own keeps the answer clear of whatever py-rattler prints.
    text = json.dumps(answer) + "\n"
    if where == "-":
        sys.stdout.write(MARK + text)
    else:
        with os.fdopen(int(where), "w", encoding="utf-8") as out:
            out.write(text)
    # os._exit flushes nothing.
    sys.stdout.flush()
    os._exit(0)


def _do(request: dict[str, Any]) -> dict[str, Any]:
    """Run the operation. `paths` has py-rattler and envmedic: this interpreter started without site-packages."""
    sys.path += request["paths"]
    if request.get("limit_s"):
        signal.alarm(int(request["limit_s"]))  # a parent that was killed cannot end this process
    from envmedic.installers.conda.helper import operations

    return operations.OPERATIONS[request["do"]](request)


if __name__ == "__main__":
    main()
