"""The server as a client of the official SDK sees it, over standard input and output."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.session import ClientRequestContext
from mcp_types import CallToolResult, ElicitRequestParams, ElicitResult, TextContent

from envmedic.agents.guidance import GUIDE, SNIPPET
from tests.cli.support import ENVMEDIC, Shell, user_of
from tests.envs.nms_cuda.case import BROKEN, REPAIRED, Case, build
from tests.real.manifest import manifest
from tests.support.rooms import in_memory

FAILURE = "RuntimeError: operator torchvision::nms does not exist\n"
OLDER, NEWER = "legacy", "auto"
"""In the older protocol a question is a request of the server's own, in the newer a result of the call."""


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Path]:
    yield from in_memory(tmp_path)


@pytest.fixture
def case(room: Path) -> Case:
    return build(room / "case")


@pytest.fixture
def user(case: Case, room: Path) -> Shell:
    return user_of(case, room / "home")


class Person:
    """Answers what the client asks, and remembers the questions."""

    def __init__(self, *, yes: bool) -> None:
        self.yes = yes
        self.questions: list[str] = []

    async def __call__(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        del context
        self.questions.append(params.message)
        return ElicitResult(action="accept", content={"carry_out": self.yes})


@asynccontextmanager
async def client_of(user: Shell, person: Person | None, mode: str) -> AsyncIterator[Client]:
    started = StdioServerParameters(command=ENVMEDIC[0], args=[*ENVMEDIC[1:], "mcp"], env=user.environment())
    async with Client(started, elicitation_callback=person, mode=mode) as client:
        yield client


def told(result: CallToolResult) -> str:
    return "\n".join(item.text for item in result.content if isinstance(item, TextContent))


async def answer(client: Client, tool: str, **arguments: object) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, told(result)
    found: dict[str, Any] | None = result.structured_content
    assert found is not None
    return found


def test_from_a_text_to_a_repaired_environment_and_back(case: Case, user: Shell) -> None:
    before = manifest(case.prefix)
    person = Person(yes=True)

    async def conversation() -> None:
        async with client_of(user, person, NEWER) as client:
            found = await answer(client, "diagnose", prefix=str(case.prefix), text=FAILURE)
            assert (found["verdict"], found["findings"][0]["playbook"], found["repairable"]) == (
                "env",
                "nms-cuda",
                True,
            )
            made = await answer(client, "plan", prefix=str(case.prefix), text=FAILURE)
            assert made["changes"] == [f"torchvision {BROKEN} -> {REPAIRED}"]
            assert manifest(case.prefix) == before
            assert person.questions == []
            record = await answer(client, "apply", plan=made["plan"], no_gpu=True)
            assert (record["outcome"], record["environment"], record["error"]) == ("repaired", "repaired", None)
            assert f"{BROKEN}  →  {REPAIRED}" in person.questions[0]
            assert manifest(case.prefix) != before
        async with client_of(user, person, OLDER) as client:
            await answer(client, "undo", prefix=str(case.prefix))

    anyio.run(conversation)
    assert len(person.questions) == 2
    assert manifest(case.prefix) == before


def test_without_a_yes_nothing_is_changed(case: Case, user: Shell) -> None:
    before = manifest(case.prefix)

    async def conversation(person: Person | None, expected: str) -> None:
        async with client_of(user, person, NEWER) as client:
            made = await answer(client, "plan", prefix=str(case.prefix), text=FAILURE)
            for tool, arguments in (
                ("apply", {"plan": made["plan"], "no_gpu": True}),
                ("undo", {"prefix": str(case.prefix)}),
            ):
                refused = await client.call_tool(tool, arguments)
                assert refused.is_error
                assert expected in told(refused)

    anyio.run(conversation, Person(yes=False), "The user declined. The environment is unchanged.")
    anyio.run(conversation, None, "Refused: this client cannot ask the user")
    assert manifest(case.prefix) == before


def test_what_it_offers_and_how_it_refuses(case: Case, user: Shell, tmp_path: Path) -> None:
    async def conversation() -> None:
        async with client_of(user, None, NEWER) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert list(tools) == ["diagnose", "check", "guard", "plan", "apply", "undo", "snapshot"]
            asked = {name: set(tool.input_schema["properties"]) for name, tool in tools.items()}
            assert asked["apply"] == {"plan", "no_gpu"}
            assert {name for name, tool in tools.items() if tool.annotations and tool.annotations.read_only_hint} == {
                "diagnose", "check", "guard", "plan",
            }  # fmt: skip
            read = await client.read_resource("envmedic://guide")
            assert [getattr(item, "text", None) for item in read.contents] == [GUIDE]
            refused = await client.call_tool("diagnose", {"prefix": str(tmp_path / "none")})
            assert refused.is_error
            assert "error: " in told(refused)
            harmful = await answer(client, "guard", prefix=str(case.prefix), command="pip install numpy==1.26.4")
            assert harmful["verdict"] == "harmless"
            checked = await answer(client, "check", prefix=str(case.prefix), requirements=["numpy>=1.20"])
            assert checked["verdict"] == "works"
            kept = await answer(client, "snapshot", prefix=str(case.prefix), message="before the agent")
            assert kept["outcome"] == "snapshot"

    anyio.run(conversation)


def test_the_lines_for_agents_are_printed(user: Shell) -> None:
    assert user.envmedic("agents").out == SNIPPET
