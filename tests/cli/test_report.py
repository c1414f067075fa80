"""``envmedic report``: what it tells, what it leaves out, and that its forms are what they say."""

from __future__ import annotations

import os
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

import msgspec
import pytest

from envmedic.api.reporting import of_record
from envmedic.model.answers.report import Report
from envmedic.model.checks import Outcome
from envmedic.model.record import Record
from envmedic.render.reports.forms import TEXTS
from tests.cli.support import REPAIR, Shell
from tests.cli.test_render import FINDING, RECORD
from tests.envs.nms_cuda.case import BROKEN, REPAIRED, Case

NASTY = "<script>alert(1)</script> | *bold* `tick` \x1b[31m @user"


def test_a_repair_is_reported_in_every_form(user: Shell, case: Case, tmp_path: Path) -> None:
    assert user.having(**case.index_variables()).envmedic(*REPAIR, "-p", str(case.prefix)).code == 0
    told = user.envmedic("report", "-p", str(case.prefix))
    assert told.code == 0, told.told()
    assert f"| torchvision | {BROKEN} | **{REPAIRED}** |" in told.out
    assert "could not run here" in told.out
    assert "**GPU:** not verified" in told.out
    undo = next(row for row in told.out.splitlines() if row.startswith("envmedic undo -p "))
    document = user.envmedic("report", "--json", "-p", str(case.prefix)).document
    assert document["schema"] == "envmedic.report/1"
    assert (document["outcome"], document["undo"]) == ("repaired", undo)
    assert user.envmedic("report", "-p", str(case.prefix), "-o", str(tmp_path)).code == 0
    assert sorted(path.name for path in tmp_path.glob("envmedic-report.*")) == [
        "envmedic-report.html", "envmedic-report.md", "envmedic-report.svg",
    ]  # fmt: skip
    assert (tmp_path / "envmedic-report.md").read_text() == told.out
    assert BROKEN in (tmp_path / "envmedic-report.svg").read_text()
    # the way back runs as it is pasted
    assert user.envmedic(*undo.split()[1:], "--yes").code == 0
    assert "and undone since" in user.envmedic("report", "-p", str(case.prefix)).out
    odd = user.envmedic("report", "-p", str(case.prefix), "-o", str(tmp_path / "x.pdf"))
    assert (odd.code, "tells no form" in odd.err) == (2, True)


def test_without_a_repair_there_is_nothing_to_report(user: Shell, shared: Case) -> None:
    done = user.envmedic("report", "-p", str(shared.prefix))
    assert (done.code, "There is no repair of" in done.err) == (2, True)


def hostile() -> Record:
    home = os.environ["HOME"]
    finding = msgspec.structs.replace(FINDING, summary=f"{NASTY} in {home}/secret-project")
    plan = msgspec.structs.replace(RECORD.plan, finding=finding)
    failed = Outcome(
        check="conv", status="fail", device="cuda", role="playbook", reason="https://me:token@host/x failed"
    )
    skipped = Outcome(check="fft", status="skip", device="cuda", role="informative", reason="no GPU")
    return msgspec.structs.replace(
        RECORD,
        plan=plan,
        prefix=f"{home}/my env",
        outcome="repaired",
        checks_after=(*RECORD.checks_after, failed, skipped),
    )


def test_secrets_and_homes_are_left_out_and_the_command_still_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/srv/alice")
    found = of_record(hostile())
    texts = [text(found) for text in TEXTS.values()] + [msgspec.json.encode(found).decode()]
    for text in texts:
        assert "alice" not in text
        assert "token@host" not in text
    assert found.undo == "envmedic undo -p ~'/my env'"
    assert "~/secret-project" in found.wrong


def test_names_of_users_outside_of_the_home_are_left_out_and_the_command_runs_in_the_active_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOME", "/srv/alice")
    monkeypatch.setenv("SUDO_USER", "carol")
    for prefix in ("/home/ada/env", "/data/carol/env"):
        found = of_record(msgspec.structs.replace(hostile(), prefix=prefix))
        assert found.undo == 'envmedic undo -p "${VIRTUAL_ENV:-$CONDA_PREFIX}"'


def test_what_is_skipped_is_never_counted_as_passed() -> None:
    found = of_record(hostile())
    assert (found.passed, found.failed, found.skipped, found.mended) == (1, 1, 1, 1)
    for text in TEXTS.values():
        assert "1 passed, 1 of them failed before, 1 failed, 1 could not run here" in text(found)


def test_what_could_not_run_is_folded_and_a_long_cause_takes_two_lines() -> None:
    found = of_record(hostile())
    shown, _, folded = TEXTS["html"](found).partition("<summary>1 could not run here</summary>")
    assert "fft" in folded
    assert "fft" not in shown
    long = msgspec.structs.replace(
        found, wrong="torchvision::nms is not registered: " + "its library did not load " * 4
    )
    rows = ["".join(row.itertext()) for row in ET.fromstring(TEXTS["svg"](long)).iter() if row.tag.endswith("}text")]
    assert rows[1].startswith("torchvision::nms is not registered")
    assert rows[2].startswith("not load its library")


class Tags(HTMLParser):
    """The elements of a page, each closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del attrs
        self.seen.add(tag)
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_foreign_text_acts_nowhere() -> None:
    found: Report = of_record(hostile())
    tags = Tags()
    tags.feed(TEXTS["html"](found))
    assert not tags.open
    assert "script" not in tags.seen
    root = ET.fromstring(TEXTS["svg"](found))
    assert {item.tag.rpartition("}")[2] for item in root.iter()} == {"svg", "rect", "g", "text", "tspan"}
    text = TEXTS["markdown"](found)
    assert "\\<script\\>" in text
    assert "\\@user" in text
    assert "\x1b" not in text
