"""The diagnosis of a text in the browser: that of ``envmedic diagnose --log-only``, with what the page shows of it."""

from __future__ import annotations

import msgspec

from envmedic.diagnosis import findings, resemblance
from envmedic.model.findings import Diagnosis, Evidence, Finding
from envmedic.model.playbook import LoadedPlaybook
from envmedic.playbook.matching import derived, forms
from envmedic.playbook.matching.log_stream import LogStream, read_lines
from envmedic.playbook.matching.match import read_text
from envmedic.render.documents import diagnosis as document
from envmedic.render.text import bare, visible

TEXT = "/tmp/pasted"
"""Where the worker puts the text, in the browser's memory."""


class Known(msgspec.Struct, frozen=True):
    """What is made before, where the page is built."""

    playbooks: tuple[LoadedPlaybook, ...]
    signatures: derived.Derived
    """The literals of all signatures of the playbooks, in their order."""
    forms: derived.Derived
    """Those of the forms of sentences."""
    words: resemblance.Table
    """What guesses at a text that no signature recognises."""


class Quoted(msgspec.Struct):
    """A line of the text."""

    line: str
    """Its number, with a remark on lines like it."""
    before: str
    words: str
    """The words by which it was recognised; empty where the whole line is meant."""
    after: str


class ShownFinding(msgspec.Struct):
    """A finding in words."""

    summary: str
    fault: str
    playbook: str | None
    sureness: str
    lines: list[Quoted]
    advice: list[str]
    alternatives: list[str]


class Shown(msgspec.Struct):
    """A diagnosis in the words of the command line."""

    mark: str
    tone: str
    sentence: str
    reasons: list[str]
    findings: list[ShownFinding]
    next_command: str
    diagnosis: Diagnosis


_known: list[Known] = []


def load(content: bytes) -> int:
    """Take what the page was built with; the number of playbooks."""
    known = msgspec.msgpack.decode(content, type=Known)
    signatures = tuple(item.pattern for loaded in known.playbooks for item in loaded.playbook.signatures)
    literals = {signatures: known.signatures, forms.patterns(): known.forms}
    # byte code alone has no sources that a key of the cache could be made of
    derived.load_literals = lambda patterns: literals.get(tuple(patterns)) or derived.derive_literals(patterns)
    _known[:] = [known]
    return len(known.playbooks)


def diagnose(name: str, path: str = TEXT) -> str:
    """What the page shows of the text at `path`, as JSON; `name` is that of its file, or ``-``."""
    text = read_lines(path)
    playbooks = _known[0].playbooks
    read = read_text(text, playbooks)
    found = findings.diagnose(read, None, playbooks, prefix=None, log=name)
    if found.undecided:
        found = resemblance.second_opinion(found, read, _known[0].words)
    return msgspec.json.encode(_shown(found if text.size or found.findings else _empty(found), text)).decode()


def _empty(found: Diagnosis) -> Diagnosis:
    return msgspec.structs.replace(found, reason="the text is empty")


def _shown(found: Diagnosis, text: LogStream) -> Shown:
    mark, tone, sentence = document.headline(found)
    reasons = [bare(row).strip() for row in document.reasons(found)]
    if text.binary:
        reasons.append("this is a binary file, where the text of an error was expected")
    return Shown(
        mark=mark,
        tone=tone,
        sentence=visible(sentence),
        reasons=reasons,
        findings=[_finding(item, found) for item in found.findings],
        next_command=document.next_command(found),
        diagnosis=found,
    )


def _finding(item: Finding, found: Diagnosis) -> ShownFinding:
    return ShownFinding(
        summary=visible(item.summary),
        fault=item.fault,
        playbook=item.playbook,
        sureness=document.sureness(item),
        lines=[_quoted(seen, item) for seen in item.evidence if seen.kind == "text"],
        advice=[visible(told) for told in item.advice if told not in found.advice],
        alternatives=[visible(f"{way.title}. {way.why_not}".rstrip()) for way in item.alternatives],
    )


def _quoted(seen: Evidence, item: Finding) -> Quoted:
    """The line with the longest group of the match in it, as the command line underlines it."""
    line = visible(seen.what).strip()
    words = max((visible(group) for group in item.groups.values() if group), key=len, default="")
    before, at, after = line.partition(words) if words else (line, "", "")
    return Quoted(line=seen.where.partition(":")[2], before=before, words=at, after=after)
