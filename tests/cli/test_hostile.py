"""What strangers put into names, metadata and logs, as the command line shows it and writes it down."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from envmedic.cli.main import main
from tests.probe.prefixes import add_distribution, make_prefix, site

pytestmark = pytest.mark.long

ESCAPES = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202eevil\u2066\x7f"
MARKUP = "[bold red]x[/][@click=app.quit]y[/]"
ACTING = ("\x1b", "\x07", "\x9b", "\x7f")
TURNING = ("\u202e", "\u2066")


def told(arguments: list[str], capfd: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    try:
        code = main(arguments)
    except SystemExit as ended:
        code = int(ended.code or 0)
    found = capfd.readouterr()
    return code, found.out, found.err


def hostile_prefix(root: Path) -> Path:
    """Escapes and markup wherever a text of an environment is told."""
    prefix = make_prefix(root)
    folder = site(prefix)
    words = f"{ESCAPES}{MARKUP}"
    info = add_distribution(folder, "torch", "2.5.1", files={"torch/version.py": f"__version__ = '2.5.1{words}'\n"})
    info.joinpath("METADATA").write_text(
        f"Name: torch\nVersion: 2.5.1\nRequires-Dist: numpy{words}\nRequires-Python: {words}\n"
    )
    (folder / "evil-1.dist-info").mkdir()
    (folder / "evil-1.dist-info" / "METADATA").write_text(f"Name: evil{words}\nVersion: 1{words}\n")
    (folder / "evil-1.dist-info" / "RECORD").write_text(
        f"a\x1b[31m{MARKUP}.py,sha256=x,9\n../../../../../etc/passwd,sha256=x,1\n"
    )
    (folder / "evil-1.dist-info" / "INSTALLER").write_text(words)
    (folder / "evil-1.dist-info" / "direct_url.json").write_text(
        json.dumps({"url": f"https://x/{words}", "archive_info": {}})
    )
    (folder / "evil-1.dist-info" / "top_level.txt").write_text(f"{words}\n")
    (folder / "evil.pth").write_text(f"import os; {words}\n/nonexistent/{words}\n")
    (folder / f"~orch-\x1b[31m{MARKUP.replace('/', '')}").mkdir()
    (prefix / "bin" / "activate").write_text(f"export LD_PRELOAD='{words}'\nexport PYTHONPATH={words}\n")
    return prefix


@pytest.mark.parametrize(
    "words", [["facts"], ["diagnose"], ["facts", "--json"], ["diagnose", "--json", "-v"], ["history"]]
)
def test_nothing_of_an_environment_acts_on_a_terminal(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "" if "--json" in words else "1")
    prefix = hostile_prefix(tmp_path / f"env{MARKUP.replace('/', '')}\x1b[31m\n$(touch x)")
    code, out, err = told([*words, "-p", str(prefix)], capfd)
    assert code in {0, 1}, err
    own = {"32", "31", "33", "2", "1", "36", "0", "1;31", "1;32", "1;33", "1;36"}
    left = [part.partition("m")[0] for part in (out + err).split("\x1b[")[1:]]
    assert [part for part in left if part not in own] == []
    assert not any(char in out + err for char in ACTING[1:])
    assert "\x1b]" not in out + err
    if "--json" in words:
        assert not any(char in out for char in (*ACTING, *TURNING))
        json.loads(out)


NAMES = (
    "-rf", "--json", "a b", "a\nb", "a'b\"c", "$(touch pwned)", "`touch pwned`", "a;touch pwned", "a&b|c", "%s%n", "{0}", "é\u202e日本",
    "a\\b", "*?[x]", "~", "#x", "!!", "x" * 200, "a\tb", ".hidden", "-",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_any_name_of_an_environment_is_taken_for_a_name(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    prefix = make_prefix(tmp_path / name)
    add_distribution(site(prefix), "demo", "1")
    code, out, err = told(["facts", "--json", f"--prefix={prefix}"], capfd)
    assert code == 0, err
    assert json.loads(out)["environment"]["prefix"] == str(prefix)
    code, _, err = told(["diagnose", f"--prefix={name}" if name != "~" else f"--prefix={prefix}"], capfd)
    assert code in {0, 1}, err
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(
    "name", ["-rf", "--index-url=https://evil.example", "a\nb", "../x", "/etc/passwd", "a;b", "$(id)", "", "\x1b[31m"]
)
def test_names_that_are_none_of_distributions_are_refused_in_words(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], name: str
) -> None:
    prefix = make_prefix(tmp_path / "env")
    code, out, err = told(["check", "-p", str(prefix), "--", name], capfd)
    assert code == 2, out + err
    assert "Traceback" not in err
    assert "\x1b" not in out + err


def test_a_log_is_shown_as_text(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / f"log{MARKUP.replace('/', '')}\x1b[31m"
    line = f"{MARKUP} RuntimeError: operator torchvision::nms does not exist {ESCAPES} {MARKUP}"
    log.write_text(f"{line}\n" * 3, encoding="utf-8")
    prefix = make_prefix(tmp_path / "env")
    for words in (["diagnose", str(log)], ["diagnose", "--json", str(log)]):
        _, out, err = told([*words, "-p", str(prefix)], capfd)
        assert "torchvision" in out
        assert not any(char in out + err for char in ACTING)
        if "--json" in words:
            assert not any(char in out for char in TURNING)


@pytest.mark.parametrize("kind", ["directory", "device", "missing", "nul"])
def test_a_log_that_is_none(tmp_path: Path, capfd: pytest.CaptureFixture[str], kind: str) -> None:
    names = {"directory": str(tmp_path), "device": "/dev/null", "missing": str(tmp_path / "-"), "nul": "a\0b"}
    code, out, err = told(["diagnose", "--", names[kind]], capfd)
    assert code in {0, 1, 2}
    assert "Traceback" not in out + err
    assert "bug" not in err
