"""Own texts of every class, alone and in the shapes in which people paste them, and logs with several errors."""

from __future__ import annotations

import html
import json
import textwrap
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from envmedic.diagnosis.candidates import CERTAIN_ENOUGH
from envmedic.diagnosis.findings import diagnose
from envmedic.model.findings import Diagnosis
from envmedic.model.playbook import LoadedPlaybook
from envmedic.playbook.matching.match import read_text
from envmedic.playbook.schema import loader

FOLDER = Path(__file__).parent
NONE = "none"
NOT_OURS = "not-an-env-problem"


def texts(name: str) -> Iterator[tuple[str, str, str]]:
    """Class, title and text of each block of a file."""
    content = (FOLDER / name).read_text(encoding="utf-8")
    for block in content.split("\n=== ")[1:]:
        head, _, text = block.partition("\n")
        fault, _, title = head.partition(": ")
        yield fault, title, text


MESSAGES = tuple((fault, text) for fault, _, text in texts("messages.txt"))
LOGS = tuple(texts("logs.txt"))


@cache
def shipped() -> tuple[LoadedPlaybook, ...]:
    files = sorted(loader.shipped_directory().glob("*.yaml"))
    return tuple(loader.load_file(file, "shipped") for file in files)


def judged(text: str) -> Diagnosis:
    return diagnose(read_text(text.encode().split(b"\n"), shipped()), None, shipped(), prefix=None, log="log")


def wrong(fault: str, text: str) -> str | None:
    """What is found instead of `fault`; None where it is right."""
    findings = judged(text).findings
    found = [f"{item.fault}/{item.signature} {item.confidence}" for item in findings[:3]]
    if fault == NONE:
        return str(found) if any(item.confidence >= CERTAIN_ENOUGH for item in findings) else None
    return None if findings and findings[0].fault == fault else str(found or "nothing")


def raised(message: str) -> str:
    return (
        f'Traceback (most recent call last):\n  File "/home/user/train.py", line 12, in <module>\n    main()\n{message}'
    )


def each_line(form: str) -> Callable[[str], str]:
    return lambda message: "\n".join(form.replace("{}", line) for line in raised(message).split("\n"))


def one_line(message: str) -> str:
    return message.replace("\n", " ")


def docker(message: str) -> str:
    entry = {"stream": "stderr", "time": "2026-01-05T05:58:46.1Z"}
    return "\n".join(json.dumps({"log": f"{line}\n", **entry}) for line in raised(message).split("\n"))


def wrapped(message: str) -> str:
    parts = (textwrap.wrap(line, 60, break_long_words=False) or [line] for line in message.split("\n"))
    return "\n".join(part for line in parts for part in line)


def cut(message: str) -> str:
    width = 72
    return "\n".join(
        line[start : start + width] for line in message.split("\n") for start in range(0, max(len(line), 1), width)
    )


SHAPES: dict[str, Callable[[str], str]] = {
    "alone": lambda message: message,
    "raised": raised,
    "rank": each_line("[rank0]: {}"),
    "server": each_line("(EngineCore_0 pid=4711) ERROR 05-07 05:58:46 [core.py:291] {}"),
    "logger": each_line("2026-01-05 05:58:46,123 - root - ERROR - {}"),
    "Kubernetes": each_line("2026-01-05T05:58:46.123456789Z stderr F {}"),
    "Docker": docker,
    "colours": each_line("\x1b[1;31m{}\x1b[0m"),
    "Windows": each_line("{}\r"),
    "quoted": each_line("> {}"),
    "comment": each_line("# {}"),
    "box": each_line("\N{BOX DRAWINGS LIGHT VERTICAL} {} \N{BOX DRAWINGS LIGHT VERTICAL}"),
    "JSON": lambda message: json.dumps({"error": raised(message), "code": 500}),
    "JSON in JSON": lambda message: json.dumps(json.dumps({"error": raised(message)})),
    "repr": lambda message: repr({"stderr": raised(message)}),
    "Markdown": lambda message: f"**Error**: `{message}`\n\nHow to fix?",
    "list": lambda message: f"- [ ] `{one_line(message)}` \N{RIGHTWARDS ARROW} reinstall",
    "table": lambda message: f"| error | fix |\n|---|---|\n| `{one_line(message)}` | reinstall it |",
    "HTML": lambda message: "<p>I get <code>" + html.escape(message).replace("\n", "<br>") + "</code></p>",
    "wrapped": wrapped,
    "cut": cut,
    "smart quotes": lambda message: message.replace("'", "\u2019").replace('"', "\u201d"),
    "Chinese": lambda message: f"\u8fd0\u884c\u65f6\u62a5\u9519\uff1a{message}\uff0c\u8bf7\u95ee\u600e\u4e48\u89e3\u51b3\uff1f",
    "Japanese": lambda message: f"\u5b9f\u884c\u3059\u308b\u3068\u300c{message}\u300d\u3068\u3044\u3046\u30a8\u30e9\u30fc",
    "Russian": lambda message: f"\u041f\u0440\u0438 \u0437\u0430\u043f\u0443\u0441\u043a\u0435: {message} \u2014 \u0447\u0442\u043e \u0434\u0435\u043b\u0430\u0442\u044c?",
    "report": lambda message: (
        "### Describe the bug\n\nOn my RTX 3090 with torch 2.1.0, installed with `pip install torch`, I get\n\n```\n"
        f"{raised(message)}\n```\n\n### Environment\nPython 3.10, Ubuntu 22.04, nvidia-smi shows CUDA Version: 12.2\n"
    ),
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
def test_the_cause_of_a_message_is_found_in_every_shape(shape: Callable[[str], str]) -> None:
    misses = {message: wrong(fault, shape(message)) for fault, message in MESSAGES}
    assert {message: found for message, found in misses.items() if found} == {}


@pytest.mark.parametrize(("fault", "title", "text"), LOGS, ids=[title for _, title, _ in LOGS])
@pytest.mark.parametrize("shape", ["alone", "JSON", "server", "Windows"])
def test_the_root_is_found_among_several_errors(fault: str, title: str, text: str, shape: str) -> None:
    del title
    assert wrong(fault, SHAPES[shape](text)) is None


@pytest.mark.parametrize(("title", "text"), [(title, text) for fault, title, text in LOGS if fault == NONE])
def test_what_no_environment_is_to_blame_for_is_explained(title: str, text: str) -> None:
    del title
    diagnosis = judged(text)
    assert diagnosis.verdict in {"not-an-env-problem", "unknown"}
    assert diagnosis.reason
    assert (diagnosis.verdict == "not-an-env-problem") == bool(diagnosis.advice)


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("ImportError: /lib64/libc.so.6: version `GLIBC_2.34' not found (required by /opt/venv/x.so)", "host"),
        ("ImportError: /lib64/libstdc++.so.6: version `GLIBCXX_3.4.30' not found (required by /opt/venv/x.so)", "env"),
        # what no environment can give goes before what one can
        (("x: /lib64/libstdc++.so.6: version `GLIBCXX_3.4.25' not found (required by x)\n"
          "x: /lib64/libm.so.6: version `GLIBC_2.27' not found (required by x)"), "host"),
        ("FileNotFoundError: [Errno 2] No such file or directory: ':/usr/local/cuda/bin/nvcc'", "shell"),
        ("No devices were found", "host"),
        (('  File "/opt/venv/lib/python3.11/site-packages/pip/_vendor/pyproject_hooks/_in_process/_in_process.py", line 353, '
          "in <module>\n    main()\nModuleNotFoundError: No module named 'torch'"), "env"),
        ("Illegal instruction (core dumped)", "host"),
        (("#9 1.2 ERROR: Exception:\n#9 1.2 Traceback (most recent call last):\n"
         '#9 1.2   File "/usr/lib/python3/dist-packages/pip/_vendor/urllib3/response.py", line 438, in _error_catcher'),
         NOT_OURS),
        ("TimeoutError: The read operation timed out", NOT_OURS),
        (("error: Failed to download `torch`\n  Caused by: Failed to download distribution due to network timeout. "
         "Try increasing UV_HTTP_TIMEOUT (current value: 30s)."), NOT_OURS),
        (("/x/pandas/_libs/__init__.py:4: RuntimeWarning: numpy.dtype size changed, may indicate binary "
         "incompatibility. Expected 96, got 88"), "unknown"),
        ("ValueError: numpy.dtype size changed, may indicate binary incompatibility. Expected 96, got 88", "env"),
    ],
)  # fmt: skip
def test_who_has_to_act(text: str, verdict: str) -> None:
    assert judged(text).verdict == verdict


def test_a_python_without_ssl_is_told_what_to_do_about_it() -> None:
    text = (
        "Could not fetch URL https://index.example.org/simple/boxes/: There was a problem confirming the ssl certificate:\n"
        "HTTPSConnectionPool(host='index.example.org', port=443): Max retries exceeded with url: /simple/boxes/ (Caused by SSLError(\"Can't connect to HTTPS URL because the SSL module is not available.\")) - skipping\n"
        "ERROR: No matching distribution found for boxes"
    )
    found = judged(text)
    assert found.verdict == NOT_OURS
    assert "without SSL" in (found.reason or "")
    assert any("libssl-dev" in line for line in found.advice)


def test_advice_that_is_one_unknown_fact_is_left_out() -> None:
    found = judged("ImportError: /lib64/libc.so.6: version `GLIBC_2.34' not found (required by /opt/venv/x.so)")
    assert found.advice == ()
    assert found.findings[0].advice == ()
