"""The ``envmedic`` script, and ``python -m envmedic``: the outermost boundary.

So short that a full disk lets Python write all of its byte code or none: what is cut is the byte code of another module.
"""

from __future__ import annotations

import sys

from envmedic import DAMAGED, damaged_byte_code


def program() -> int:
    """Run one command in a process that is its own, and return its exit code."""
    try:
        from envmedic.program import program as run

        return run()
    except Exception as error:
        # Only of a module by which errors are told; `cli.main` tells of all others.
        file = damaged_byte_code(error)
        if file is None:
            raise
        return _tell(file)


def _tell(file: str) -> int:
    """Say so without any other module of ours, and return the exit code of `errors.DamagedByteCode`."""
    summary, cause, hint = (text.format(file) for text in DAMAGED)
    environment = "recoverable" if "envmedic.engine" in sys.modules else "unchanged"
    if "--json" in sys.argv:
        import json

        told = {"schema": "envmedic.error/1", "code": "damaged-byte-code", "exit_code": 1, "summary": summary}
        told |= {"cause": cause, "hint": hint, "environment": environment, "details": [], "outcome": None}
        print(json.dumps(told, indent=2))  # noqa: T201
    again = "\n  If a repair was under way, run `envmedic recover` then" if environment == "recoverable" else ""
    print(f"error: {summary}\n  cause: {cause}\n  hint: {hint}{again}", file=sys.stderr)  # noqa: T201
    return 1


if __name__ == "__main__":
    sys.exit(program())
