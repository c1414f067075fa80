"""What is taken for a secret, and what is not."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from envmedic.redact import HIDDEN, is_secret, redact_text, redact_variable, redact_words

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.SflKxwRJSMeKKF2QT4fwpM"
KEY = "MIIEpAIBAAKCAQEA7bq3xZk0sVn1Yw2hQ9u8T5r4e3w2q1Zm9n8b7v6c5x4Q"


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
        ("login --token abc now", "login --token *** now"),
        ("wandb login " + "0a1b2c3d" * 5, "wandb login ***"),
        ("Command '['curl', '--token', 'abc']'", "Command '['curl', '--token', ***]'"),
        ("pwd=abc; passphrase: correct", "pwd=***; passphrase: ***"),
        ("password = abc", "password = ***"),
        ("PGPASSWORD=abc psql", "PGPASSWORD=*** psql"),
        ("cmd='x --password=abc'", "cmd='x --password=***'"),
        ('{\\"accessToken\\": \\"a b\\"}', '{\\"accessToken\\": ***}'),
        ("key=9aF3kQ7zLm2Xw8Rt", "key=***"),
        ("ASIAABCDEFGHIJKLMNOP", "***"),
        ("_authToken=npm_" + "a1" * 18, "_authToken=***"),
        ("got npm_" + "a1" * 18, "got ***"),
        (f"sent {JWT}.", "sent ***."),
        ("AIza" + "Sy1_" * 9, "***"),
        ("xoxe-1234567890-abc", "***"),
        ("https://x.blob/c?sv=1&sig=a%2Fb&se=2", "https://x.blob/c?sv=1&sig=***&se=2"),
        ("https://s3/x?X-Amz-Signature=0af&X-Amz-Date=1", "https://s3/x?X-Amz-Signature=***&X-Amz-Date=1"),
        (f"-----BEGIN RSA PRIVATE KEY-----\n{KEY}\nab\n-----END", "-----BEGIN RSA PRIVATE KEY-----***-----END"),
        (KEY, "***"),
        ("machine h login me password abc", "machine h login me password ***"),
        ("curl -H 'Cookie: a=b; c=d' x", "curl -H 'Cookie: ***' x"),
        ("set-cookie: a=b; Path=/", "set-cookie: ***"),
        ("Proxy-Authorization: Basic YTpi", "Proxy-Authorization: ***"),
        ("('Authorization', 'Bearer abc')", "('Authorization', ***)"),
        ('Authorization: Digest username="a", response="b"', "Authorization: ***"),
        ("PostgreSQL://u:p/q#r@h/db", "PostgreSQL://***@h/db"),
        ("conda.example/t/tk-12/chan", "conda.example/t/***/chan"),
        ("curl -u me:abc https://h", "curl -u me:*** https://h"),
        ('def f(password: str = "abc")', "def f(password: str = ***)"),
        ("setenv HF_TOKEN abc", "setenv HF_TOKEN ***"),
        ('os.environ["HF_TOKEN"] = "abc"', 'os.environ["HF_TOKEN"] = ***'),
        ('password="a\\"b" c', "password=*** c"),
    ],
)  # fmt: skip
def test_secrets_are_hidden(text: str, shown: str) -> None:
    assert redact_text(text) == shown


@pytest.mark.parametrize(
    "text",
    ["git@github.com:a/b", "tokenizer=3.0", "max_tokens=12", "KeyError: 'x'", 'File "b.py", line 3, in pass: foo', "PASS: test",
     "a.so: undefined symbol: _ZN3c1017RegisterOperatorsD1Ev", "https://host/path@1.0", "key=val", "12:30@noon", "key=value", "token=42", "tokenizer: slow", "num_tokens=1024", "token=None",
     "google-auth==2.3.0", "google-auth=2.3.0", "requests-auth>=1", "PWD=/srv/x", "pass=3, fail=2", "bos_token='<s>'", "monkey=9aF3kQ7zLm2Xw8Rt",
     "the option --token is required", "usage: x [--token TOKEN]", "at::token::x", "key: model.layers.0.weight", "return self.token",
     "token=self.token", "Basic Linear Algebra Subprograms", "https://host:8080/a@b", "KeyError: 'token'", "bypass=1",
     "ImportError: libcudnn.so.9: cannot open shared object file", "password=${DB_PASSWORD}", "/data/glid-3-xl-stable-master/x.py"],
)  # fmt: skip
def test_what_is_none_stays(text: str) -> None:
    assert redact_text(text) == text


@pytest.mark.parametrize("part", ["a.a-a+", "?a-", "a_", "://x", "x:", "'", "a:b", "token:", "@", "=", "-token ", "password ", "key",
                                  'password="', "token='''", "eyJa.", "cookie: ", "-----BEGIN PRIVATE KEY-----"])  # fmt: skip
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


LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
DIGITS = "0123456789"
SECRET = st.text(LETTERS + DIGITS + "+._~", min_size=12, max_size=48).map(lambda text: f"q7Z{text}9Xk2")
NAMES = st.sampled_from(
    ("token", "HF_TOKEN", "access_token", "refreshToken", "x-auth-token", "password", "PGPASSWORD", "db.passwd", "pwd", "passphrase",
     "secret", "client_secret", "clientSecret", "api_key", "api-key", "apiKey", "X_API_KEY", "access-key", "private_key", "AccountKey",
     "AWS_SECRET_ACCESS_KEY")
)  # fmt: skip
SHAPES = st.sampled_from(
    (
        *(
            "{n}={s}",
            "{n} = {s}",
            "{n}: {s}",
            "{n}:{s}",
            "{n}='{s}'",
            '{n}: "{s}"',
            "--{n} {s}",
            "--{n}={s}",
            "--{n} '{s}'",
        ),
        *(
            '{{"{n}": "{s}"}}',
            "{{'{n}': '{s}', 'a': 1}}",
            '{{\\"{n}\\": \\"{s}\\"}}',
            "['--{n}', '{s}']",
            "({n}={s})",
            "f(x, {n}={s}, y=1)",
        ),
        *(
            "{n}=b'{s}'",
            "export {n}={s};",
            "https://h/p?a=1&{n}={s}&b=2",
            "cmd='run --{n}={s} -v'",
            'environ["{n}"] = "{s}"',
        ),
        *(
            "Authorization: Bearer {s}",
            "authorization: token {s}",
            "Proxy-Authorization: Basic {s}",
            "-H 'Authorization: {s}'",
        ),
        *(
            "Cookie: sid={s}; a=b",
            "Set-Cookie: a=b; sid={s}; Path=/",
            "{{'Authorization': 'Bearer {s}'}}",
            "X-Api-Key: {s}",
        ),
        *(
            "https://u:{s}@h/p",
            "https://{s}@h/p",
            "postgresql+psycopg://u:{s}@h:1/d",
            "u:{s}@proxy:3128",
            "https://h/t/{s}/c",
        ),
        *(
            "machine h login u password {s}",
            "curl -u u:{s} h",
            "curl --user u:{s} h",
            "https://hooks.slack.com/services/{s}",
        ),
    )
)


@settings(max_examples=250, deadline=None)
@given(
    NAMES,
    SHAPES,
    SECRET,
    st.sampled_from(("", "ERROR ", "[rank0]: ", "x='")),
    st.sampled_from((str, str.upper, str.lower)),
)
def test_no_shape_shows_its_secret(
    name: str, shape: str, secret: str, before: str, spelt: Callable[[str], str]
) -> None:
    text = before + shape.format(n=spelt(name), s=secret) + " then"
    shown = redact_text(text)
    assert secret not in shown, shown
    assert HIDDEN in shown
    assert shown.startswith(before)
    assert redact_text(shown) == shown


@settings(max_examples=80, deadline=None)
@example("key=value of (plain) code")
@given(st.from_regex(r"(?:[a-z]{1,8}[ .=:(]{1,2}){1,8}", fullmatch=True))
def test_plain_words_stay(text: str) -> None:
    words = "token|pass|pwd|secret|credential|auth|username|cookie|bearer|basic|key|@"
    if re.search(words, text) is None or text == "key=value of (plain) code":
        assert redact_text(text) == text


def test_variables_by_name() -> None:
    assert redact_variable("HF_TOKEN", "a b") == redact_variable("PGPASSWORD", "x") == HIDDEN
    assert redact_variable("PWD", "/srv/x") == "/srv/x"
    assert not is_secret("TOKENIZERS_PARALLELISM", "false")


def test_a_megabyte_of_log_is_searched_in_a_second_or_so() -> None:
    lines = [
        '[rank0]: File "/opt/conda/lib/python3.11/site-packages/torch/nn/modules/module.py", line 1511, in _call'
    ] * 10_000
    begun = time.process_time()
    for text in lines:
        redact_text(text)
    assert time.process_time() - begun < 5
