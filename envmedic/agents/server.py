"""The server of the Model Context Protocol on standard input and output. The only module that imports mcp.

Only `apply` and `undo` change an environment, and both ask the user through the protocol's elicitation first; a client
that cannot ask is refused. Standard output belongs to the protocol: nothing here prints.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial, wraps
from pathlib import Path
from typing import Annotated, ParamSpec, TypeVar

import anyio.from_thread
from mcp.server.elicitation import AcceptedElicitation, ElicitationResult
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.resolve import Elicit, Resolve
from mcp_types import ToolAnnotations
from pydantic import BaseModel, Field

from envmedic import __version__, api
from envmedic.agents import answers, guidance
from envmedic.api import guarding
from envmedic.api.context.settings import Settings
from envmedic.api.knowledge import compatibility
from envmedic.errors import EnvmedicError
from envmedic.model.events import Event, EventStream, StageStarted
from envmedic.model.plan import Plan
from envmedic.model.ports import ApplyOptions
from envmedic.owner import require_own

MOST_PLANS = 20
"""Plans of one connection that `apply` can still be given."""

Prefix = Annotated[str, Field(description="Directory of the environment, as sys.prefix of its Python says")]
Text = Annotated[str | None, Field(description="The whole error text, as the program printed it")]
_READS = ToolAnnotations(read_only_hint=True, open_world_hint=True)
_CHANGES = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=True)

P = ParamSpec("P")
R = TypeVar("R")


class Plans:
    """The plans that were made on this connection, by the beginning of their id."""

    def __init__(self) -> None:
        self._made: dict[str, Plan] = {}

    def add(self, made: Plan) -> None:
        """Keep `made`; the oldest goes where there are too many."""
        self._made[made.id[:12]] = made
        for oldest in list(self._made)[:-MOST_PLANS]:
            del self._made[oldest]

    def named(self, plan: str) -> Plan:
        """Return the plan. Raises ToolError for one that was not made here."""
        if plan not in self._made:
            raise ToolError(f"No plan {plan!r} was made on this connection. Make one with the tool `plan`.")
        return self._made[plan]


class Consent(BaseModel):
    """The user's answer."""

    carry_out: bool = Field(description="Whether to do it")


Answer = ElicitationResult[Consent]
Call = Context[Plans, None]


def _told(function: Callable[P, R]) -> Callable[P, R]:
    """Let errors of envmedic reach the model as text; everything else is a bug, which the SDK logs."""

    @wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except EnvmedicError as error:
            raise ToolError(answers.of_error(error)) from error

    return called


def _progress(context: Call) -> Callable[[Event], None]:
    """Report each stage to the client: a repair takes from seconds to minutes."""
    begun = 0

    def report(event: Event) -> None:
        nonlocal begun
        if isinstance(event.data, StageStarted):
            begun += 1
            anyio.from_thread.run(partial(context.report_progress, begun, message=event.data.stage))

    return report


def _plans(context: Call) -> Plans:
    return context.request_context.lifespan_context


def _require_questions(context: Call, instead: str) -> None:
    """Raise ToolError for a client that cannot ask its user."""
    able = context.client_capabilities
    if able is None or able.elicitation is None:
        raise ToolError(
            "Refused: this client cannot ask the user, and nothing is changed without a yes. The environment is "
            f"unchanged. The user can run: {instead}"
        )


def _agreed(answer: Answer) -> None:
    if not (isinstance(answer, AcceptedElicitation) and answer.data.carry_out):
        raise ToolError("The user declined. The environment is unchanged.")


def _ask_to_apply(context: Call, plan: str) -> Elicit[Consent]:
    made = _plans(context).named(plan)
    _require_questions(context, f"envmedic apply -p {made.prefix}")
    return Elicit(f"Repair a copy, and swap it in when its checks pass?\n\n{answers.plan_text(made)}", Consent)


def _ask_to_undo(context: Call, prefix: str) -> Elicit[Consent]:
    _require_questions(context, f"envmedic undo -p {prefix}")
    return Elicit(f"Bring {prefix} back as it was before the last repair or install?", Consent)


@_told
def diagnose(context: Call, prefix: Prefix | None = None, text: Text = None) -> answers.DiagnosisAnswer:
    """Say what is wrong, by an error text, the files of an environment, or both. Changes nothing.

    Call it first when a program fails at an import, with CUDA, a missing library, a symbol or versions.
    """
    return answers.of_diagnosis(api.diagnose(prefix, text, events=_progress(context)))


@_told
def check(
    context: Call,
    prefix: Prefix,
    requirements: Annotated[list[str], Field(description="Such as flash-attn or torch>=2.7", min_length=1)],
) -> answers.CheckAnswer:
    """Say whether requirements would work in the environment on this machine, and what they would change."""
    require_own(Path(prefix))
    settings = Settings(stream=EventStream([_progress(context)]))
    return answers.of_check(compatibility.check(settings, Path(prefix), requirements))


@_told
def guard(
    context: Call,
    prefix: Prefix,
    command: Annotated[str, Field(description="A command of pip, uv or conda, such as: pip install -U transformers")],
) -> answers.GuardAnswer:
    """Say what an installer's command would change and break, before it is run. Runs nothing."""
    require_own(Path(prefix))
    settings = Settings(stream=EventStream([_progress(context)]))
    return answers.of_guard(guarding.guard(settings, Path(prefix), command))


@_told
def plan(context: Call, prefix: Prefix, text: Text = None) -> answers.PlanAnswer:
    """Make the exact repair of what the text reports, or of what the files show. Changes nothing; `apply` takes its id."""
    made = api.plan(prefix, text, events=_progress(context))
    if made is None:
        raise ToolError("Nothing is at fault in this environment. If a program fails, give its whole error text.")
    _plans(context).add(made)
    return answers.of_plan(made)


@_told
def apply(
    context: Call,
    plan: Annotated[str, Field(description="Id of a plan, from the tool `plan`")],
    answer: Annotated[Answer, Resolve(_ask_to_apply)],
    *,
    no_gpu: Annotated[bool, Field(description="Accept that no GPU proves it, on a machine without one")] = False,
) -> answers.RecordAnswer:
    """Carry out a plan in a clone, check the clone, and swap it in. Asks the user first; undo brings it back."""
    _agreed(answer)
    made = _plans(context).named(plan)
    record = api.apply(made, options=ApplyOptions(no_gpu=no_gpu), events=_progress(context))
    if record is None:
        raise ToolError("Nothing was to be done. The environment is unchanged.")
    return answers.of_record(record)


@_told
def undo(context: Call, prefix: Prefix, answer: Annotated[Answer, Resolve(_ask_to_undo)]) -> answers.RecordAnswer:
    """Bring the environment back as it was before its last repair or install, to the byte. Asks the user first.

    Declined where files that changed since would be set aside: the user decides on that with `envmedic undo`.
    """
    _agreed(answer)
    return answers.of_record(api.undo(prefix, events=_progress(context)))


@_told
def snapshot(
    context: Call, prefix: Prefix, message: Annotated[str, Field(description="What it is for")] = ""
) -> answers.RecordAnswer:
    """Keep the environment as it is, so that undo can go back to it. Call it before other tools change packages."""
    return answers.of_record(api.snapshot(prefix, message, events=_progress(context)))


def guide() -> str:
    """When to use which tool."""
    return guidance.GUIDE


@asynccontextmanager
async def _lifespan(_server: MCPServer[Plans]) -> AsyncIterator[Plans]:
    yield Plans()


def server() -> MCPServer[Plans]:
    """Return the server, with its tools and its one resource."""
    made: MCPServer[Plans] = MCPServer(
        "envmedic", version=__version__, instructions=guidance.GUIDE, lifespan=_lifespan, log_level="WARNING"
    )
    reading: tuple[Callable[..., object], ...] = (diagnose, check, guard, plan)
    for tool in (*reading, apply, undo, snapshot):
        made.add_tool(tool, annotations=_READS if tool in reading else _CHANGES)
    made.resource("envmedic://guide", title="When to use envmedic", mime_type="text/markdown")(guide)
    return made


def serve() -> None:
    """Serve one client on standard input and output, until it goes away."""
    server().run("stdio")
