"""What is taken for a secret, and what is not."""

from __future__ import annotations

import pytest

from envmedic.redact import redact_text, redact_words


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("proxy = bob:S3cret@proxy:3128", "proxy = ***@proxy:3128"),
        ("https:/me:pw@host/x.yaml", "https:/***@host/x.yaml"),
        ("https://c.example/t/TK-1/main/linux-64", "https://c.example/t/***/main/linux-64"),
        ("HF_TOKEN=abc def", "HF_TOKEN=*** def"),
        ("--api-key=abc", "--api-key=***"),
        ("Authorization: Bearer abc.def", "Authorization: ***"),
        ('"password": "x y"', '"password": ***'),
        ("see hf_abcdefghijklmnopqrstuv", "see ***"),
        ("AWS_SECRET_ACCESS_KEY='a b'", "AWS_SECRET_ACCESS_KEY=***"),
    ],
)  # fmt: skip
def test_secrets_are_hidden(text: str, shown: str) -> None:
    assert redact_text(text) == shown


@pytest.mark.parametrize(
    "text",
    ["git@github.com:a/b", "tokenizer=3.0", "max_tokens=12", "KeyError: 'x'", 'File "b.py", line 3, in pass: foo', "PASS: test",
     "a.so: undefined symbol: _ZN3c1017RegisterOperatorsD1Ev", "https://host/path@1.0", "key=val", "12:30@noon"],
)  # fmt: skip
def test_what_is_none_stays(text: str) -> None:
    assert redact_text(text) == text


@pytest.mark.parametrize("part", ["a.a-a+", "?a-", "a_", "://x", "x:", "'", "a:b", "token:", "@", "=", "-token "])
def test_hostile_text_takes_linear_time(part: str) -> None:
    text = part * (400_000 // len(part))
    assert len(redact_text(text)) <= 4 * len(text)


def test_secret_options_of_a_command_line() -> None:
    words = ["python", "--hf-token", "abc", "--lr", "1", "-p", "x", "--password=qq", "https://u:p@h/"]
    assert redact_words(words) == [
        "python",
        "--hf-token",
        "***",
        "--lr",
        "1",
        "-p",
        "x",
        "--password=***",
        "https://***@h/",
    ]
