"""Keeping secrets out of what is shown, kept and shared."""

from __future__ import annotations

import re
from collections.abc import Iterable

HIDDEN = "***"
_CREDENTIALS = re.compile(r"(?P<scheme>\b[a-zA-Z][a-zA-Z0-9+.-]{1,31}:/{1,2})(?P<user>[^/\s?#]*)@")
_WITHOUT_SCHEME = re.compile(
    r"(?P<before>^|[\s=,'\"])(?P<login>[^\s/@:=,'\"]{1,256}:[^\s/@'\"]{1,256})@(?=[\w.-]{1,253}:\d)"
)
"""``user:password@proxy:3128``, as proxies are often written."""
_QUERY_SECRET = re.compile(r"(?i)([?&;](?:[a-z_-]{0,64}(?:token|key|secret|password|signature|sig)))=[^&#\s]+")
_CHANNEL_TOKEN = re.compile(r"(?P<before>://[^\s'\"]{0,200}?/t/)[^/\s'\"]+")
"""Of conda: ``https://host/t/TOKEN/channel``."""
_SECRET_NAME = re.compile(
    r"(?i)(?:^|_)(?:TOKEN|PASSWORD|PASSWD|PASS|SECRET|SECRETS|CREDENTIAL|CREDENTIALS|APIKEY|API_KEY|ACCESS_KEY|"
    r"PRIVATE_KEY|AUTH|USERNAME)(?:$|_)"
)
_SAID = re.compile(r"(?i)(?:^|_)(?:TOKEN|PASSWORD|PASSWD|SECRET|APIKEY|API_KEY|ACCESS_KEY|PRIVATE_KEY|AUTHORIZATION)$")
"""Names before a colon, where sentences have some of the others too."""
_ASSIGNED = re.compile(
    r"(?<![\w-])(?P<name>[\w-]{1,64})(?P<sign>=|['\"]?:\s{0,2})"
    r"(?P<value>'[^']{0,4096}'|\"[^\"]{0,4096}\"|(?:(?i:bearer|basic|token)\s{1,2})?[^\s'\",;&]{1,4096})"
)
_KNOWN = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{20,}|gh[oprsu]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|pypi-[\w-]{20,}"
    r"|sk-[\w-]{20,}|AKIA[A-Z0-9]{16}|xox[abprs]-[\w-]{10,})"
)
"""Tokens of services that are told by their beginning."""


def redact_url(text: str) -> str:
    """Return `text` with user, password, channel token and secret query values of every URL in it hidden."""
    hidden = text
    if "@" in text:
        hidden = _CREDENTIALS.sub(lambda match: f"{match['scheme']}{HIDDEN}@", text)
        hidden = _WITHOUT_SCHEME.sub(lambda match: f"{match['before']}{HIDDEN}@", hidden)
    if "/t/" in hidden:
        hidden = _CHANNEL_TOKEN.sub(rf"\g<before>{HIDDEN}", hidden)
    return _QUERY_SECRET.sub(rf"\1={HIDDEN}", hidden) if "=" in hidden else hidden


def redact_variable(name: str, value: str) -> str:
    """Value of an environment variable as it may be shared: all of it hidden where the name says secret."""
    return HIDDEN if value and _SECRET_NAME.search(name) else redact_text(value)


def is_secret(name: str, value: str) -> bool:
    """Whether an environment variable holds a secret, by its name or in its value."""
    return redact_variable(name, value) != value


def redact_text(text: str) -> str:
    """A line that some program printed, without what looks like a secret: in URLs, headers, assignments, known tokens."""
    return _KNOWN.sub(HIDDEN, _ASSIGNED.sub(_assigned, redact_url(text)))


def _assigned(match: re.Match[str]) -> str:
    """A name with its value, which is hidden where the name says secret."""
    name = match["name"].strip("-").replace("-", "_")
    secret = _SECRET_NAME if match["sign"] == "=" else _SAID
    return f"{match['name']}{match['sign']}{HIDDEN}" if secret.search(name) else match[0]


def redact_words(words: Iterable[str]) -> list[str]:
    """A command line of somebody's without its secrets, also where they are words of their own: ``--token X``."""
    found: list[str] = []
    secret = False
    for word in words:
        found.append(HIDDEN if secret else redact_text(word))
        name = word.lstrip("-").replace("-", "_")
        secret = word.startswith("-") and "=" not in word and _SECRET_NAME.search(name) is not None
    return found
