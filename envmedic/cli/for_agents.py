"""``envmedic mcp`` and ``envmedic agents``: for coding agents."""

from __future__ import annotations

import argparse
import sys

from envmedic.agents import guidance
from envmedic.errors import EnvmedicError, ExitCode
from envmedic.render.streams import write


def mcp(_args: argparse.Namespace) -> int:
    """``envmedic mcp``. Raises EnvmedicError where the extra is missing."""
    try:
        from envmedic.agents import server
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in {"mcp", "mcp_types", "anyio", "pydantic"}:
            raise
        raise EnvmedicError(
            "The package mcp is not installed beside envmedic",
            cause="The server of the Model Context Protocol is in the extra `mcp`",
            hint="Install it: pip install 'envmedic[repair,mcp]', or: uv tool install 'envmedic[repair,mcp]'",
        ) from error
    server.serve()
    return int(ExitCode.OK)


def agents(_args: argparse.Namespace) -> int:
    """``envmedic agents``."""
    write(sys.stdout, guidance.SNIPPET)
    return int(ExitCode.OK)
