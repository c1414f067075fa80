"""Options, variables and streams: what is refused, who wins, and what goes where."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from envmedic.cli.help import GROUPS
from envmedic.cli.parser import build_parser
from envmedic.errors import InputError
from tests.cli.support import ENVMEDIC, REPAIR, ROOT, SAMPLES, Shell, failure, state_of
from tests.envs.nms_cuda.case import BROKEN, REPAIRED, Case

SAMPLE = str(SAMPLES / "sample_operator_does_not_exist.log")
COLOUR = re.compile(r"\x1b\[\d+m")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--bogus"], "--bogus"),
        (["bogus"], "there is no command 'bogus' (there are 'diagnose', 'run'"),
        (["diagnoze"], "there is no command 'diagnoze', did you mean diagnose?"),
        (["verify", "--profile", "quik"], "invalid choice: 'quik', did you mean quick?"),
        (["diagnose", "one.log", "-q", "two.log"], "envmedic diagnose does not understand: two.log"),
        (["playbooks", "list", "--all"], "envmedic playbooks does not understand: --all"),
        (["plan", "--bogus"], "--bogus"),
        (["plan", "--no"], "--no"),
        (["apply", "--timeout", "soon"], "'soon' is not a number of seconds above 0"),
        (["apply", "--timeout", "-1"], "'-1' is not a number of seconds above 0"),
        (["apply", "--timeout", "nan"], "'nan' is not a number of seconds above 0"),
        (["apply", "--keep", "-1"], "'-1' is not a whole number from 0 on"),
        (["apply", "--max-rounds", "0"], "'0' is not a whole number from 1 on"),
        (["apply", "--clone", "magic"], "invalid choice: 'magic'"),
        (["apply", "--allow", "all"], "invalid choice: 'all'"),
        (["playbooks"], "envmedic playbooks takes one of list, show"),
    ],
)
def test_wrong_words(words: list[str], says: str) -> None:
    with pytest.raises(InputError, match=re.escape(says)) as raised:
        build_parser().parse_args(words)
    assert raised.value.exit_code == 2
    assert "--help" in str(raised.value.hint)


def test_an_option_that_is_nearly_right_is_named() -> None:
    with pytest.raises(InputError) as raised:
        build_parser().parse_args(["plan", "--no-gpus"])
    assert (raised.value.cause, raised.value.hint) == ("did you mean --no-gpu?", "See `envmedic plan --help`")


def test_an_option_before_its_command_is_sent_after_it() -> None:
    with pytest.raises(InputError) as raised:
        build_parser().parse_args(["--json", "explain", "nms-cuda"])
    assert raised.value.cause == "--json belongs after `explain`"


def test_a_command_without_its_dashes_is_shown_with_them() -> None:
    with pytest.raises(InputError, match="stands after `--`") as raised:
        build_parser().parse_args(["run", "python", "train.py"])
    assert raised.value.hint == "Write it so: envmedic run -- python train.py"


def test_a_wrong_word_is_a_document_under_json(reader: Shell) -> None:
    failure(reader.envmedic("plan", "--json", "--bogus"), code=2, kind="input", says="--bogus")
    failure(reader.having(ENVMEDIC_JSON="1").envmedic("plan", "--bogus"), code=2, kind="input", says="--bogus")


def test_nothing_at_all_is_a_short_help(reader: Shell) -> None:
    done = reader.envmedic()
    assert (done.code, done.out) == (2, "")
    assert "envmedic diagnose LOG" in done.err
    assert reader.envmedic("--version").out.startswith("envmedic 0.")
    assert "Exit codes:" in reader.envmedic("--help").out


def test_help_lists_every_command_once_by_its_purpose(reader: Shell) -> None:
    text = reader.envmedic("--help").out
    known = build_parser()._subparsers
    assert known is not None
    names = [name for action in known._group_actions for name in action.choices or ()]
    for name in names:
        assert len(re.findall(rf"^  {name} ", text, re.MULTILINE)) == 1, name
    for title, commands in GROUPS:
        section = text.partition(f"\n{title}:\n")[2].partition("\n\n")[0]
        assert [row.split()[0] for row in section.splitlines() if row[2] != " "] == [*commands]
    assert "Usage: envmedic COMMAND … [OPTIONS]" in text
    assert "Usage: envmedic run [OPTIONS] -- CMD…" in reader.envmedic("run", "--help").out
    assert "Usage: envmedic apply [PLAN.json] [OPTIONS]" in reader.envmedic("apply", "--help").out


def test_help_has_weight_and_colour_where_it_is_wanted(reader: Shell) -> None:
    coloured = reader.having(FORCE_COLOR="1").envmedic("plan", "--help").out
    assert "\x1b[1mExamples:\x1b[0m" in coloured
    assert "\x1b[36m--log FILE\x1b[0m" in coloured
    plain = re.sub(r"\x1b\[\d*m", "", coloured)
    assert plain == reader.having(NO_COLOR="1").envmedic("plan", "--help").out


def test_help_is_as_wide_as_the_terminal_up_to_a_hundred_columns(reader: Shell) -> None:
    texts = {
        columns: reader.having(COLUMNS=columns).envmedic("plan", "--help").out
        for columns in ("60", "80", "140", "0", "none")
    }
    assert texts["60"].count("\n") > texts["80"].count("\n") > texts["140"].count("\n")
    assert texts["0"] == texts["none"] == texts["80"]  # no terminal
    # examples are command lines, which are not broken
    text = texts["140"].partition("What to repair:")[2]
    assert 80 < max(map(len, text.splitlines())) <= 100


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("TIMEOUT", "soon", "not a number of seconds"),
        ("JSON", "maybe", "on (1) or off (0)"),
        ("CLONE", "magic", "it can be one of: auto, reflink, link, copy"),
        ("KEEP", "many", "not a whole number"),
        ("FIND_LINKS", "'half", "No closing quotation"),
        ("ALLOW", "base everything", "it can be one of: base"),
    ],
)
def test_wrong_variables(monkeypatch: pytest.MonkeyPatch, name: str, value: str, says: str) -> None:
    monkeypatch.setenv(f"ENVMEDIC_{name}", value)
    with pytest.raises(InputError) as raised:
        build_parser().parse_args(["apply"])
    assert raised.value.summary.startswith(f"ENVMEDIC_{name} is ")
    assert says in str(raised.value.cause)


def test_variables_speak_where_the_command_line_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "TIMEOUT": "2.5", "NO_GPU": "yes", "VERBOSE": "2", "CLONE": "copy", "KEEP": "3", "YES": "0",
        "FIND_LINKS": "https://host/wheels '/my wheels'", "PREFIX": "/env",
    }.items():  # fmt: skip
        monkeypatch.setenv(f"ENVMEDIC_{name}", value)
    silent = build_parser().parse_args(["apply"])
    assert (silent.timeout, silent.no_gpu, silent.verbose, silent.clone) == (2.5, True, 2, "copy")
    assert (silent.keep, silent.yes, silent.prefix, silent.name) == (3, False, "/env", None)
    assert silent.find_links == ["https://host/wheels", "/my wheels"]
    spoken = build_parser().parse_args(
        ["apply", "--timeout", "9", "-v", "--clone", "auto", "--keep", "1", "--find-links", "/a", "-n", "name"]
    )
    assert (spoken.timeout, spoken.verbose, spoken.clone, spoken.keep) == (9.0, 1, "auto", 1)
    assert (spoken.find_links, spoken.prefix, spoken.name) == (["/a"], None, "name")


def test_a_variable_of_another_command_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENVMEDIC_CLONE", "magic")
    assert build_parser().parse_args(["diagnose"]).command == "diagnose"


def test_a_prefix_by_variable(reader: Shell, shared: Case) -> None:
    user = reader.having(ENVMEDIC_PREFIX=str(shared.prefix), ENVMEDIC_JSON="1")
    assert user.envmedic("diagnose").document["prefix"] == str(shared.prefix)
    both = user.having(ENVMEDIC_NAME="x").envmedic("diagnose")
    failure(both, code=2, kind="input", says="More than one environment is named")


def test_json_is_one_document_and_narration_is_on_stderr(reader: Shell, shared: Case) -> None:
    for command in (("diagnose", SAMPLE), ("facts",), ("plan", "--playbook", "nms-cuda"), ("history",), ("recover",)):
        done = reader.envmedic(*command, "--json", "-v", "-p", str(shared.prefix))
        assert done.document["schema"].startswith("envmedic."), done.told()
        assert f"environment: {shared.prefix}" in done.lines


def test_quiet_is_silent_but_for_the_result(reader: Shell, shared: Case) -> None:
    done = reader.envmedic("plan", "-q", "--playbook", "nms-cuda", "-p", str(shared.prefix))
    assert (done.code, done.err) == (0, "")
    assert f"torchvision  {BROKEN}  →  {REPAIRED}" in done.out


def test_colour_is_asked_for(reader: Shell) -> None:
    def coloured(*options: str, **variables: str) -> bool:
        done = reader.having(**variables).envmedic("diagnose", "--log-only", *options, SAMPLE)
        return bool(COLOUR.search(done.out))

    assert not coloured()
    assert coloured(FORCE_COLOR="1")
    assert not coloured(FORCE_COLOR="1", NO_COLOR="1")
    assert coloured("--color", "always", NO_COLOR="1")
    assert not coloured("--color", "never", FORCE_COLOR="1")
    assert not coloured("--json", "--color", "always")


def test_events_are_json_lines_in_a_file_or_on_stderr(reader: Shell, shared: Case, tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    options = ("--json", "--playbook", "nms-cuda", "-p", str(shared.prefix))
    first = reader.envmedic("plan", "--events", str(file), *options)
    in_file = [json.loads(line) for line in file.read_text().splitlines()]
    second = reader.envmedic("plan", *options, "--events")
    on_stderr = [json.loads(line) for line in second.err.splitlines()]
    assert first.code == second.code == 0
    for events in (in_file, on_stderr):
        assert [item["sequence"] for item in events] == list(range(len(events)))
        stages = [item["data"]["stage"] for item in events if item["data"]["type"] == "stage-finished"]
        assert stages == ["probe", "resolve"]
    wrong = reader.envmedic("plan", "--json", "--events", str(tmp_path / "no" / "events"), *options)
    failure(wrong, code=2, kind="input", says="cannot be written")


def test_events_of_a_repair_end_with_its_transaction(user: Shell, case: Case) -> None:
    done = user.envmedic(*REPAIR, "--json", "-p", str(case.prefix), "--events")
    events = [json.loads(line) for line in done.err.splitlines()]
    assert (events[-1]["transaction"], events[-1]["data"]["type"]) == (
        done.document["transaction"],
        "transaction-finished",
    )
    assert {item["data"]["phase"] for item in events if item["data"]["type"] == "check-finished"} == {
        "before",
        "after",
        "smoke",
    }


def test_a_reader_that_goes_away_is_no_error(reader: Shell) -> None:
    command = f"{' '.join(ENVMEDIC)} playbooks schema | head -n 1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, check=False, cwd=ROOT, env=reader.environment()
    )
    assert done.stdout.splitlines() == ["{", "0"]
    assert done.stderr == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_result_that_cannot_be_written_is_told(reader: Shell) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*ENVMEDIC, "playbooks", "schema"],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False, cwd=ROOT, env=reader.environment(),
        )  # fmt: skip
    assert done.returncode == 1
    assert "error: The result could not be written to standard output" in done.stderr
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_locale_without_the_letters_is_no_error(reader: Shell, shared: Case, tmp_path: Path) -> None:
    link = tmp_path / "é→"
    link.symlink_to(shared.prefix)
    done = reader.having(LC_ALL="C", PYTHONIOENCODING="ascii").envmedic("diagnose", "-p", str(link))
    assert done.code == 1, done.told()
    assert "\\xe9" in done.out


def test_nothing_is_written_by_looking(reader: Shell, shared: Case) -> None:
    before = state_of(shared.prefix.parent)
    for command in (("diagnose",), ("facts",), ("plan", "--playbook", "nms-cuda"), ("history",), ("recover",)):
        reader.having(PYTHONDONTWRITEBYTECODE="").envmedic(*command, "-p", str(shared.prefix))
    assert state_of(shared.prefix.parent) == before
