"""What the app knows, and the command lines that do the same: plain values, without Textual."""

from __future__ import annotations

import pkgutil
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

import envmedic.render
from envmedic.api.context.settings import RepairRequest, Settings
from envmedic.api.context.texts import KEPT_TEXTS, keep_text
from envmedic.errors import InputError
from envmedic.model.answers.environments import FoundEnvironment
from envmedic.model.events import EventStream
from envmedic.model.facts import Host
from envmedic.model.findings import Diagnosis, Finding
from envmedic.model.plan import Plan
from envmedic.model.ports import ApplyOptions
from envmedic.render.pages.finding import finding_item
from envmedic.render.text import bare
from envmedic.tui.command_lines import apply_line, diagnose_line, lock_line, plan_line, watch_line, words
from envmedic.tui.screens.home_lines import environment_card, environment_item
from envmedic.tui.session import AppState, Known, TextSource

EMPTY = AppState(Settings(stream=EventStream([])), ApplyOptions())


def known(prefix: str, *, active: bool = False) -> Known:
    return Known(FoundEnvironment(prefix=prefix, kind="venv", active=active, found_by="test", python="3.11.7"))


def finding(playbook: str | None = "nms-cuda", *, confirmed: bool | None = True) -> Finding:
    return Finding(
        fault="torchvision-ops", playbook=playbook, signature=None, confidence=0.9, confirmed=confirmed,
        summary="operators are missing", fix_kind="reinstall-matching-wheel",
    )  # fmt: skip


def diagnosis(*findings: Finding) -> Diagnosis:
    return Diagnosis(prefix=None, facts=None, verdict="env" if findings else "healthy", findings=findings)


FOUND = EMPTY.with_environments((known("/b"), known("/a", active=True)))


def test_the_active_environment_is_first_and_chosen() -> None:
    assert [item.prefix for item in FOUND.environments] == ["/a", "/b"]
    assert FOUND.chosen == "/a"


def test_what_is_known_stays_when_environments_are_found_again() -> None:
    read = FOUND.choosing("/b").with_state("/b", "read", diagnosis=diagnosis())
    again = read.with_environments((known("/b"), known("/c")))
    assert again.chosen == "/b"
    assert [(item.prefix, item.phase) for item in again.environments] == [("/b", "read"), ("/c", "waiting")]


def test_news_of_an_earlier_text_is_dropped() -> None:
    first, second = TextSource("paste", "/one"), TextSource("paste", "/two")
    session = FOUND.with_source(second).told_with_facts(first, "/a", diagnosis(finding()))
    assert session.findings == ()
    assert session.told_with_facts(second, "/a", diagnosis(finding())).findings == (finding(),)


def test_facts_of_another_environment_say_nothing_about_the_chosen_one() -> None:
    source = TextSource(
        "paste", "/one", alone=diagnosis(finding(confirmed=None)), joined=diagnosis(finding()), prefix="/b"
    )
    session = FOUND.with_source(source)
    assert session.findings[0].confirmed is None
    assert session.choosing("/b").findings[0].confirmed is True


@pytest.mark.parametrize(
    ("source", "wish", "line"),
    [
        (None, RepairRequest(playbook="nms-cuda"), "envmedic diagnose -p /a"),
        (TextSource("log", "/my log"), RepairRequest(log="/my log"), "envmedic diagnose -p /a '/my log'"),
        (
            TextSource("command", "python x.py", ("python", "x.py")),
            RepairRequest(command=("python", "x.py")),
            "envmedic diagnose -p /a --reproduce -- python x.py",
        ),
        (
            TextSource("command", "python x.py", ("python", "x.py"), kept=True),
            RepairRequest(last=True),
            "envmedic diagnose -p /a --last",
        ),
    ],
)
def test_the_best_finding_is_repaired_by_what_was_given(
    source: TextSource | None, wish: RepairRequest, line: str
) -> None:
    found = diagnosis(finding(), finding("other"))
    session = FOUND.with_state("/a", "read", diagnosis=found)
    session = session.with_source(None if source is None else replace(source, alone=found))
    assert session.wish(finding()) == wish
    assert session.wish(finding("other")).playbook == "other"
    assert diagnose_line(session) == line


def test_without_an_environment_a_text_speaks_alone() -> None:
    assert diagnose_line(EMPTY) == "envmedic envs"
    assert diagnose_line(EMPTY.with_source(TextSource("log", "/x"))) == "envmedic diagnose --log-only /x"


def test_plan_and_apply_lines_carry_what_matters() -> None:
    wish = RepairRequest(playbook="nms-cuda", log="/x")
    assert plan_line(FOUND, wish) == "envmedic plan --playbook nms-cuda --log /x -p /a"
    plan = Plan(
        envmedic="0", created="", prefix="/a", real_prefix="/a", environment_digest="", playbook="nms-cuda",
        fault="torchvision-ops", host=Host(), steps=(),
    )  # fmt: skip
    assert apply_line(FOUND, plan, wish) == "envmedic apply --playbook nms-cuda --log /x -p /a"
    assert plan_line(FOUND, RepairRequest(last=True)) == "envmedic plan --last -p /a"
    assert apply_line(FOUND, plan, RepairRequest(last=True)) == "envmedic apply --last -p /a"
    settings = Settings(stream=EventStream([]), find_links=("/w",), offline=True, installer="pip", pin=True)
    other = replace(FOUND, settings=settings, options=ApplyOptions(no_gpu=True))
    expected = "envmedic apply --find-links /w --offline --no-gpu --pin --installer pip -p /a"
    assert apply_line(other, plan, RepairRequest()) == expected
    allowed = replace(FOUND, options=ApplyOptions(allow=("in-use", "base")))
    expected = "envmedic apply --way 'torch 2.6.0' --allow in-use --allow base -p /a"
    assert apply_line(allowed, plan, RepairRequest(way="torch 2.6.0")) == expected
    assert plan_line(FOUND, RepairRequest(way="torch 2.6.0")) == "envmedic plan --way 'torch 2.6.0' -p /a"
    line = lock_line("/my env", "pylock", "/out/", "pylock.toml", incomplete=True)
    assert line == "envmedic lock --format pylock -o /out/pylock.toml --allow-incomplete -p '/my env'"


def test_a_command_line_is_split_as_a_shell_does() -> None:
    assert words("python 'a b.py'") == ["python", "a b.py"]
    assert watch_line(FOUND, "python 'a b.py'") == "envmedic run -p /a -- python 'a b.py'"
    for bad in ("", "  ", "python 'a"):
        assert watch_line(FOUND, bad) == ""
        with pytest.raises(InputError):
            words(bad)


def test_items_fit_and_say_by_marks_what_they_say_by_colour() -> None:
    item = environment_item(FOUND.environments[0], 24)
    assert [bare(row).rstrip() for row in item] == [" * /a", "   · not read yet  venv…"]
    assert bare(environment_item(FOUND.environments[0], 24, chosen=True)[0]).startswith("▸* /a")
    (row,) = environment_item(FOUND.environments[0], 80)  # one line, where there is room
    assert bare(row).split() == ["*", "/a", "·", "not", "read", "yet"]
    broken = FOUND.with_state("/a", "read", diagnosis=diagnosis(finding(), finding("other")))
    assert "✗ torchvision-ops +1" in bare(environment_item(broken.environments[0], 40)[1])
    marks = [bare(finding_item(finding(confirmed=value), 60)[0])[0] for value in (True, None, False)]
    assert marks == ["✗", "?", "-"]


def test_an_environment_that_cannot_be_read_says_why() -> None:
    error = InputError("it is gone", cause="no such file", hint="name another")
    failed = FOUND.with_state("/a", "failed", error=error)
    assert [bare(row) for row in environment_card(failed.current)] == [
        "/a", "! it is gone", "  no such file", "  name another",
    ]  # fmt: skip


def test_pasted_texts_are_kept_for_their_owner_and_old_ones_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    texts = [f"error {number}\udcff\r\n" for number in range(KEPT_TEXTS + 3)]
    paths = [keep_text(text) for text in texts]
    assert keep_text(texts[-1]) == paths[-1]
    assert paths[-1].read_bytes() == f"error {KEPT_TEXTS + 2}".encode() + b"\xff\r\n"
    assert len(list(paths[-1].parent.iterdir())) == KEPT_TEXTS
    assert paths[-1].stat().st_mode & 0o777 == 0o600
    assert paths[-1].parent.stat().st_mode & 0o777 == 0o700
    assert keep_text("HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyzABCDEFGH\n").read_text() == "HF_TOKEN=***\n"


def test_what_the_app_knows_needs_no_textual() -> None:
    import subprocess

    names = ["envmedic.tui.session", "envmedic.tui.command_lines", "envmedic.tui.screens.home_lines"]
    names += [module.name for module in pkgutil.walk_packages(envmedic.render.__path__, "envmedic.render.")]
    program = "".join(f"import {name}\n" for name in names)
    program += "import sys\nprint(any(name.partition('.')[0] == 'textual' for name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
