"""README and docs: what they show can be run, what they link to exists, and what they list is what there is."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from envmedic.api.context.settings import Settings
from envmedic.api.playbook_trial import try_playbook
from envmedic.cli.main import parse
from envmedic.errors import ExitCode
from envmedic.model.events import EventStream
from envmedic.model.playbook import RemedyStep
from envmedic.playbook.schema import loader
from tests import demo
from tests.docs import howto, site, tutorial
from tests.docs.commands import commands
from tests.docs.schemas import schema

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    *(ROOT / name for name in site.FROM_ROOT.values()),
    *sorted((ROOT / "docs").glob("*.md")),
    *ROOT.glob("tests/**/*.md"),
]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
_FENCE = re.compile(r"^```(?P<kind>\w*)\n(?P<body>.*?)^```$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\]\((?!https?:)(?P<path>[^)#\s]*)(?P<anchor>#[^)]*)?\)")


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def blocks(path: Path, kind: str) -> list[str]:
    """The fenced blocks of one language in a page."""
    return [match["body"] for match in _FENCE.finditer(read(path)) if match["kind"] == kind]


def shown_commands(program: str) -> list[tuple[str, list[str]]]:
    """Every command line of `program` in the console blocks of all pages, with the page's name."""
    lines = [(path.name, line) for path in PAGES for block in blocks(path, "console") for line in block.splitlines()]
    found = []
    for name, line in lines:
        if line.startswith(f"$ {program} "):
            words = shlex.split(line.removeprefix("$ "), comments=True)
            cut = next((index for index, word in enumerate(words) if word in {"|", ">", ">>", "<", "2>"}), len(words))
            found.append((name, words[1:cut]))
    return found


def test_the_pages_are_found_and_show_commands() -> None:
    assert {path.name for path in PAGES} >= {"README.md", "how-it-works.md", "playbooks.md", "documents.md"}
    assert len(shown_commands("envmedic")) >= 10
    assert len(shown_commands("make")) >= 5


@pytest.mark.parametrize(("page", "words"), shown_commands("envmedic"), ids=lambda value: " ".join(value)[:60])
def test_a_shown_command_line_is_one_of_envmedic(page: str, words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("ENVMEDIC_")]:
        monkeypatch.delenv(name)
    assert parse(words).command or not words, page  # alone it opens the terminal UI


@pytest.mark.parametrize(("page", "words"), shown_commands("make"), ids=lambda value: " ".join(value)[:60])
def test_a_shown_make_target_exists(page: str, words: list[str]) -> None:
    for target in (word for word in words if "=" not in word):
        assert f"\n{target}:" in MAKEFILE, page


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    assert [link for link in _LINK.finditer(read(path)) if not leads(path, link)] == []


def leads(path: Path, link: re.Match[str]) -> bool:
    """Whether a link in the file `path` leads to a file or a page that is made, and to a heading of it."""
    target = path if not link["path"] else (path.parent / link["path"]).resolve()
    inside = target.relative_to(ROOT / "docs").as_posix() if target.is_relative_to(ROOT / "docs") else ""
    text = howto.pages().get(inside) or (read(target) if target.is_file() else None)
    return text is not None and (not link["anchor"] or link["anchor"][1:] in anchors(text))


def anchors(text: str) -> set[str]:
    """What links can name in a page: its headings, as GitHub and the site name them."""
    outside = _FENCE.sub("", text)
    heads = re.findall(r"^#+ (.+)$", outside, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}


def test_a_link_that_leads_nowhere_is_found() -> None:
    page = ROOT / "docs" / "locks.md"
    told = "[a](nowhere.md) [b](playbooks.md#nothing) [c](playbooks.md#by-example) [d](faults-by-name/nms-cuda.md)"
    assert [leads(page, link) for link in _LINK.finditer(told)] == [False, False, True, True]


def test_every_playbook_has_a_page_whose_links_and_commands_exist() -> None:
    pages = howto.pages()
    assert len(pages) == len(list((ROOT / "playbooks").glob("*.yaml"))) + 1
    for name, text in pages.items():
        listed = {link["path"] for link in _LINK.finditer(text)} if name.endswith("index.md") else set()
        assert {f"{howto.FOLDER}/{path}" for path in listed - {"../paste-a-log.md"}} <= set(pages)
        for line in tutorial.commands(text):
            assert parse(shlex.split(line)[1:]).command, name


def test_the_navigation_has_every_page_once() -> None:
    listed = [page for _, pages in site.NAVIGATION for page in pages]
    written = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert len(listed) == len(set(listed))
    assert written | set(site.FROM_ROOT) <= set(listed)


def test_the_tutorial_shows_what_its_steps_run() -> None:
    shown = list(tutorial.commands(read(tutorial.PAGE)))
    told = [line for line in shown if not line.startswith("uv ")]  # envmedic's own output
    assert told == [*tutorial.PREPARED, *(step.command for step in tutorial.STEPS)]


def test_every_command_has_examples_that_it_understands() -> None:
    for command in commands():
        assert command.examples, command.name
        for text, _ in command.examples:
            words = shlex.split(text)
            cut = next((index for index, word in enumerate(words) if word in {">", ">>", "<", "|"}), len(words))
            parsed = parse(words[:cut])
            assert command.name.startswith(parsed.command)
            assert text.startswith(command.name.partition(" ")[0])


def test_the_example_playbook_is_valid_and_so_is_the_condition() -> None:
    example, first_line, condition, remedy = blocks(ROOT / "docs" / "playbooks.md", "yaml")
    whole = loader.parse((first_line + example).encode(), "example.yaml")
    assert whole.when is None
    assert loader.parse((example + condition).encode(), "example.yaml").when is not None
    decided = re.sub(r"(?s)^steps:.*?(?=^checks)", lambda _: remedy, example, flags=re.MULTILINE)
    assert loader.parse(decided.encode(), "example.yaml").steps == (RemedyStep(name="numpy-abi"),)


def test_the_example_of_a_playbook_is_not_taken_for_a_shipped_one(tmp_path: Path) -> None:
    example = blocks(ROOT / "docs" / "playbooks.md", "yaml")[0]
    file = tmp_path / f"{loader.parse(example.encode(), 'example.yaml').id}.yaml"
    file.write_text(example, encoding="utf-8")
    tried = try_playbook(Settings(stream=EventStream(())), str(file), [])
    assert tried.passed, tried


def test_the_example_of_an_event_is_one() -> None:
    (example,) = blocks(ROOT / "docs" / "documents.md", "json")
    Draft202012Validator(schema("event")).validate(json.loads(example))


def test_readme_lists_every_exit_code() -> None:
    section = read(ROOT / "README.md").partition("### Exit codes")[2].partition("\n## ")[0]
    rows = [int(match[1]) for match in re.finditer(r"^\| (\d+) \|", section, re.MULTILINE)]
    assert rows == [int(code) for code in ExitCode]


def test_variables_of_the_pages_are_options() -> None:
    words = {word for path in PAGES for word in re.findall(r"ENVMEDIC_([A-Z_]*[A-Z])\b", read(path))}
    sources = (ROOT / "envmedic" / "cli" / "arguments").glob("*.py")
    options = {name for path in sources for name in re.findall(r'"--([a-z-]+)"', read(path))}
    unknown = (
        words
        - {name.upper().replace("-", "_") for name in options}
        - {"TEST_REAL", "TEST_PROCESSES", "CORPUS", "THEME", "NODE_ROOT"}
    )
    assert unknown == set()
    assert "TORCH_INDEX" in words


def test_the_settings_of_the_demo_reach_a_shell_as_they_are() -> None:
    wanted = {"PIP_INDEX_URL": "file:///a b/it's/$HOME", "UV_NO_CONFIG": "1"}
    asked = "".join(f'printf "%s\\n" "${name}"; ' for name in wanted)
    done = subprocess.run(["sh", "-c", demo.settings(wanted) + asked], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == list(wanted.values())
