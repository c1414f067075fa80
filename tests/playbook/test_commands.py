"""A step of kind `command` is shown and never carried out, whoever's playbook it is."""

from __future__ import annotations

import hashlib
import os
import threading
import zlib
from pathlib import Path

import pytest

from envmedic.errors import NoSolution
from envmedic.model.facts import Environment, Facts, Host, Interpreter
from envmedic.model.findings import Finding
from envmedic.planner.remedies import Situation
from envmedic.planner.requested_changes import gather
from envmedic.playbook.schema import loader

EMPTY = Environment(
    prefix="/e", real_prefix="/e", kind="venv", interpreter=Interpreter(path="/e/bin/python", starts=True)
)
SITUATION = Situation(Facts(host=Host(), environment=EMPTY), EMPTY)
TEXT = """\
id: strangers
fault: torchvision-ops
title: A fault
explain: Something is wrong.
fix_kind: other
signatures:
  - {{id: one, pattern: "undefined symbol strangers", sample: "undefined symbol strangers"}}
steps:
  - {{step: purge, distributions: [demo]}}
  - {{step: command, argv: [/bin/sh, -c, "touch {mark}"]}}
checks: [import]
"""


def playbook(folder: Path) -> tuple[Path, Path]:
    folder.mkdir(parents=True, exist_ok=True)
    file, mark = folder / "strangers.yaml", folder / "ran"
    file.write_text(TEXT.format(mark=mark), encoding="utf-8")
    return file, mark


def test_no_plan_is_made_of_it(tmp_path: Path) -> None:
    file, mark = playbook(tmp_path)
    with pytest.raises(NoSolution, match="not supported") as caught:
        gather(loader.load_file(file), {}, SITUATION)
    assert caught.value.details == (f"command /bin/sh -c touch {mark}",)
    assert not mark.exists()


def test_no_command_line_runs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from envmedic.cli.main import main
    from tests.probe.prefixes import add_distribution, make_prefix, site

    file, mark = playbook(tmp_path / "config" / "envmedic" / "playbooks")
    link = tmp_path / "link.yaml"
    link.symlink_to(file)
    prefix = make_prefix(tmp_path / "env")
    add_distribution(site(prefix), "demo", "1")
    log = tmp_path / "log"
    log.write_text("undefined symbol strangers\n")
    target = ["-p", str(prefix)]
    monkeypatch.chdir(tmp_path)
    assert main(["playbooks", "validate", str(link)]) == 0
    assert main(["playbooks", "show", "strangers"]) == 0
    assert main(["diagnose", str(log), *target]) in {0, 1}
    assert main(["plan", "--playbook", str(link), "--no-gpu", *target]) != 0
    assert main(["apply", "--playbook", "strangers", "--no-gpu", "--yes", *target]) != 0
    assert main(["apply", "--log", str(log), "--no-gpu", "--yes", *target]) == 1, (
        "what the facts show besides is not repaired in the place of what the text says"
    )
    assert not mark.exists()


def test_the_digest_is_that_of_what_was_parsed_and_the_file_is_read_once(tmp_path: Path) -> None:
    """Of a FIFO there is nothing to be read twice: whoever exchanges the file in between exchanges nothing."""
    file, _ = playbook(tmp_path)
    content = file.read_bytes()
    pipe = tmp_path / "pipe.yaml"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(content,))
    writer.start()
    loaded = loader.load_file(pipe)
    writer.join(300)
    assert loaded.sha256 == hashlib.sha256(content).hexdigest()
    assert loaded.playbook.id == "strangers"


def test_a_change_of_one_byte_is_another_playbook(tmp_path: Path) -> None:
    file, _ = playbook(tmp_path)
    before = loader.load_file(file)
    file.write_text(file.read_text().replace("A fault", "A Fault"), encoding="utf-8")
    after = loader.load_file(file)
    assert before.sha256 != after.sha256
    assert (before.playbook.title, after.playbook.title) == ("A fault", "A Fault")


def test_a_pipe_among_the_users_playbooks_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    folder = tmp_path / "config" / "envmedic" / "playbooks"
    folder.mkdir(parents=True)
    os.mkfifo(folder / "pipe.yaml")
    (folder / "zero.yaml").symlink_to("/dev/zero")
    assert all(item.origin == "shipped" for item in loader.load_all())


def test_a_cache_that_was_edited_is_not_believed(tmp_path: Path) -> None:
    """It is found by the digest of the YAML and holds one of its own: an edit alone makes it damaged."""
    from envmedic.playbook.schema import cache

    file, _ = playbook(tmp_path)
    loader.load_file(file)
    (stored,) = (cache.user_root() / "playbooks").iterdir()
    edited = zlib.decompress(stored.read_bytes()).replace(b"A fault", b"Another")
    stored.write_bytes(zlib.compress(edited))
    assert loader.load_file(file).playbook.title == "A fault"


def test_a_log_can_name_distributions_alone() -> None:
    """What a log says fills texts, and is a requirement or none: no option and no path."""
    from envmedic.model.playbook import InstallStep, LoadedPlaybook, Playbook
    from envmedic.planner.placeholders import values_of

    steps = (InstallStep(requirements=("{name}",)),)
    book = Playbook(id="a", fault="torchvision-ops", title="a", explain="a", fix_kind="other", steps=steps)
    loaded = LoadedPlaybook(playbook=book, path="x", sha256="x", origin="file")
    for name in (
        "-rf",
        "--index-url=https://evil.example",
        "../x",
        "/etc/passwd",
        "a\n-r x",
        "a; rm -rf ~",
        "$(id)",
        "",
    ):
        finding = Finding(
            fault="torchvision-ops", playbook="a", signature=None, confidence=1.0, confirmed=True, summary="a",
            fix_kind="other", groups={"name": name},
        )  # fmt: skip
        with pytest.raises(NoSolution, match="no requirement"):
            gather(loaded, values_of(loaded, finding, {}), SITUATION)
