"""Fuzzing of envmedic's own documents as strangers send them, of what it shows, hides and hears."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from envmedic import redact
from envmedic.api.repair import read_plan
from envmedic.diagnosis import findings
from envmedic.engine.verify.kernel_session import MARK, KernelSession
from envmedic.errors import EnvmedicError
from envmedic.locks import reading
from envmedic.model.base import from_json, to_json
from envmedic.model.checks import Check, Verification
from envmedic.model.facts import Facts
from envmedic.model.findings import Diagnosis
from envmedic.model.lock import Lock
from envmedic.model.plan import Plan
from envmedic.model.record import Record
from envmedic.planner.identity import named
from envmedic.playbook.matching.match import read_text
from envmedic.playbook.schema import loader
from envmedic.render.documents.checks import verification_lines
from envmedic.render.documents.diagnosis import diagnosis_lines
from envmedic.render.documents.errors import error_lines
from envmedic.render.documents.facts import facts_lines
from envmedic.render.documents.lock import lock_lines
from envmedic.render.documents.plan import plan_lines
from envmedic.render.documents.record import record_lines
from envmedic.render.style import Style
from envmedic.render.text import Line
from tests.fuzz import samples
from tests.fuzz.target import JSON, Reader, Target

_PLAIN, _COLOURED = Style(colour=False), Style(colour=True)
_OWN = "\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[32m", "\x1b[33m", "\x1b[36m", "\x1b[1;31m", "\x1b[1;36m"
_SECRET = "hf_abcdefghijklmnopqrstuvwxyz0123"
_ACTING = (b"\x1b]8;;https://example.org\x07x\x1b]8;;\x07", b"\x1b]52;c;aWQ=\x07", b"\x1b[2J", b"\x1bc", b"\xe2\x80\xae", b"\xe2\x81\xa6",
           b"\xc2\x9b31m", b"\r", b"\x08", b"\x0b", b"\xe2\x80\xa8", b"\x7f", b"\xf3\xa0\x81\x81", b"\x1b[32m")  # fmt: skip
_HIDDEN = (
    b"https://user:pass@host/",
    b"token=",
    b"--password ",
    b"://h/t/",
    b"Authorization: Bearer ",
    b"?sig=",
    b"hf_",
    b"sk-",
    b"'",
)


class Acting(Exception):
    """What would be printed can act on a terminal."""


def shown(lines: list[Line], style: Style) -> str:
    """`lines` as they are printed. Raises `Acting`."""
    text = "\n".join(style.text(lines))
    rest = text
    for own in _OWN if style is _COLOURED else ():
        rest = rest.replace(own, "")
    wrong = next((character for character in rest if not character.isprintable() and character not in "\n\t"), None)
    if wrong is not None:
        raise Acting(ascii(wrong))
    return text


@cache
def recorded() -> Mapping[str, Any]:
    """Documents of a real repair, as the tests of the terminal UI keep them."""
    found: Mapping[str, Any] = json.loads((Path(__file__).parents[1] / "tui" / "recorded.json").read_bytes())
    return found


def _sample(name: str) -> bytes:
    return json.dumps(recorded()[name]).encode()


def _verification() -> bytes:
    document = {"schema": "envmedic.verification/1", "prefix": "/env", "gpu": "not verified", "passed": False,
                "outcomes": recorded()["record"]["after"], "regressions": ["import torch"]}  # fmt: skip
    return json.dumps(document).encode()


def _lock() -> bytes:
    package = {"manager": "pip", "name": "demo", "version": "1.0", "kind": "wheel", "url": "https://example.org/demo.whl",
               "filename": "demo.whl", "sha256": "ab", "requires": ["numpy>1"]}  # fmt: skip
    lock = {"schema": "envmedic.lock/1", "envmedic": "0.1.0", "created": "", "platform": "linux-64", "python": "3.11.4",
            "packages": [package], "prefix": "/env"}  # fmt: skip
    return json.dumps(lock).encode()


_Shown = Callable[[Any], list[Line]]
_KINDS: tuple[tuple[type[Any], _Shown], ...] = (
    (Plan, plan_lines), (Record, record_lines), (Diagnosis, diagnosis_lines), (Verification, verification_lines),
    (Lock, lock_lines), (Facts, facts_lines),
)  # fmt: skip


def _documents(_: Path) -> Reader:
    """Whatever can be decoded can be shown, and encoded again."""

    def read(data: bytes) -> object:
        refused: EnvmedicError | None = None
        for kind, lines in _KINDS:
            try:
                found = from_json(data, kind, source="the document")
            except EnvmedicError as error:
                refused = error
                continue
            assert from_json(to_json(found), kind, source="the document") == found
            return [shown(lines(found), style) for style in (_PLAIN, _COLOURED)]
        assert refused is not None
        return [shown(error_lines(refused), style) for style in (_PLAIN, _COLOURED)]

    return read


def _plan(scratch: Path) -> Reader:
    """A plan whose id agrees with its content, since its maker can see to that."""
    file = scratch / "plan.json"
    prefix = scratch / "env"
    prefix.mkdir()

    def read(data: bytes) -> object:
        try:
            made: Plan | None = named(
                from_json(data.replace(b"/home/me/vision/env", str(prefix).encode()), Plan, source="plan")
            )
        except EnvmedicError:
            made = None
        file.write_bytes(data if made is None else to_json(made).encode())
        return read_plan(file)

    return read


def _lock_file(scratch: Path) -> Reader:
    file = scratch / "lock.json"

    def read(data: bytes) -> object:
        file.write_bytes(data)
        return reading.read(file)

    return read


def _shown_log(scratch: Path) -> Reader:
    playbooks = loader.load_all()

    def read(data: bytes) -> object:
        found = findings.diagnose(
            read_text(data.split(b"\n"), playbooks), None, playbooks, prefix=None, log=str(scratch / "log")
        )
        return [shown(diagnosis_lines(found), style) for style in (_PLAIN, _COLOURED)]

    return read


def _redacted(_: Path) -> Reader:
    """Secrets are hidden wherever they stand; what was hidden stays so when it is hidden again."""

    def read(data: bytes) -> object:
        text = data.decode("utf-8", "replace")
        hidden = redact.redact_text(f"{text} {_SECRET} https://me:{_SECRET}@example.org/x")
        assert _SECRET not in hidden
        return redact.redact_url(text), redact.redact_words(text.split()), redact.redact_variable(text[:64], text)

    return read


def _kernels(_: Path) -> Reader:
    """What an environment under repair prints, in the middle of what its checks report."""
    checks = [Check(name="matmul", role="playbook"), Check(name="import", role="playbook", arguments=("torch",))]

    def read(data: bytes) -> object:
        heard: list[object] = []
        session = KernelSession(checks, lambda _, outcome: heard.append(to_json(outcome)))
        for line in data.decode("utf-8", "replace").split("\n"):
            session.hear(line)
        return heard, session.ended

    return read


def _said() -> list[bytes]:
    outcome = {"index": 0, "check": "matmul", "status": "pass", "device": "cuda:0", "seconds": 0.1, "tolerance": 1e-3,
               "max_relative_error": 1e-6, "reason": "", "detail": "a\nb", "applicable": True}  # fmt: skip
    lines = [
        {"outcome": outcome},
        {"outcome": {**outcome, "index": 1, "status": "fail", "signal": "SIGSEGV"}},
        {"end": True},
    ]
    return ["".join(f"{MARK}{json.dumps(line)}\nnoise\n" for line in lines).encode()]


_REDACTED = [
    b"pip install --index-url https://user:secret@example.org/simple torch==2.5.1 --token abc",
    b"curl -H 'Authorization: Bearer abc.def' https://host/t/tok-en/channel?x=1&api_key=abc proxy=me:pw@proxy:3128",
    b"HF_TOKEN=hf_aaaaaaaaaaaaaaaaaaaaaaaa password: 'x y z' AKIAABCDEFGHIJKLMNOP ghp_aaaaaaaaaaaaaaaaaaaaaaaa",
]
TARGETS: tuple[Target, ...] = (
    Target(name="documents", reader=_documents, words=(*JSON, *_ACTING),
           samples=lambda: [*map(_sample, ("plan", "record", "alone", "joined")), _verification(), _lock()]),
    Target(name="plan-file", reader=_plan, samples=lambda: [_sample("plan")], promised=(EnvmedicError,),
           words=(*JSON, b"../../", b'"-rf"', b'"local_path": "/etc/passwd"', b'"type": "pin"')),
    Target(name="lock-file", reader=_lock_file, samples=lambda: [_lock()], promised=(EnvmedicError,), words=JSON),
    Target(name="shown", reader=_shown_log, samples=samples.logs, words=_ACTING),
    Target(name="secrets", reader=_redacted, samples=lambda: _REDACTED, words=_HIDDEN),
    Target(name="kernel-report", reader=_kernels, samples=_said, promised=(EnvmedicError,), words=(*JSON, MARK.encode(), b'{"outcome":', b'{"end":')),
)  # fmt: skip
