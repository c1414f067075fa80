"""Keeping secrets out of what is shown, kept and shared.

A secret is recognised by the name that it is assigned to, by its header, flag or URL, or by the form that a service
gives its tokens. The time of every search grows with the text alone: values are read to their end, never searched for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

HIDDEN = "***"
_CREDENTIALS = re.compile(
    r"(?P<scheme>\b[a-zA-Z][a-zA-Z0-9+.-]{1,31}:/{1,2})"
    r"(?:[^/\s?#]*|[^/\s?#@:\[]{1,256}:(?!\d{1,5}/)[^\s@'\"]{1,256})@"
)
_WITHOUT_SCHEME = re.compile(
    r"(?P<before>^|[\s=,'\"])(?P<login>[^\s/@:=,'\"]{1,256}:[^\s/@'\"]{1,256})@(?=[\w.-]{1,253}:\d)"
)
"""``user:password@proxy:3128``, as proxies are often written."""
_QUERY_SECRET = re.compile(
    r"(?i)([?&;](?:[\w-]{0,64}(?:token|key|secret|password|passwd|pwd|signature|sig|credential)))=[^&#\s'\"]+"
)
_CHANNEL_TOKEN = re.compile(
    r"(?P<before>(?:://[^\s'\"]{0,200}?|(?<![\w.-])[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}(?::\d{1,5})?)/t/)[^/\s'\"]+"
    r"|(?P<path>/t/)[a-z]{2}-[0-9a-f]{8}-[\w-]{8,}"
)
"""Of conda: ``https://host/t/TOKEN/channel``."""
_WEBHOOK = re.compile(r"(hooks\.slack\.com/\w{1,20}|/api/webhooks)/[^\s'\"]+")
_KNOWN = re.compile(
    r"(?:(?<![A-Za-z0-9_])|(?<=\\[nrt]))(?:hf_[A-Za-z0-9]{20,}|gh[oprsu]_[A-Za-z0-9]{20,}|github_pat_\w{20,}"
    r"|gl(?:pat|ptt|dt|rt|cbt|soat|ft|imt|agent|oas)-[\w-]{16,}|pypi-[\w-]{20,}|npm_[A-Za-z0-9]{20,}"
    r"|dckr_pat_[\w-]{16,}|dapi[0-9a-f]{32}"
    r"|sk-[\w-]{20,}|[rs]k_(?:live|test)_[A-Za-z0-9]{16,}|nvapi-[\w-]{20,}|A(?:KIA|SIA|BIA|CCA)[A-Z0-9]{16}"
    r"|xox[a-z]-[\w-]{10,}|xapp-[\w-]{10,}|AIza[\w-]{30,}|ya29\.[\w-]{20,}|GOCSPX-[\w-]{20,}|SG\.[\w-]{16,}\.[\w-]{16,}"
    r"|eyJ[\w-]{6,}\.[\w-]{6,}(?:\.[\w-]+){0,3})"
)
"""Tokens of services that are told by their beginning; the last are JSON web tokens."""
_BEGINNINGS = (
    "hf_", "gh", "gl", "pypi-", "npm_", "dckr_", "dapi", "sk-", "k_live", "k_test", "nvapi-",
    "AKIA", "ASIA", "ABIA", "ACCA", "xox", "xapp-", "AIza", "ya29.", "GOCSPX-", "SG.", "eyJ",
)  # fmt: skip
"""One of these is in a text that `_KNOWN` matches: a search for each is faster than that for the pattern."""
_PRIVATE_KEY = re.compile(r"(-----BEGIN [A-Z0-9 ]{0,32}PRIVATE KEY(?: BLOCK)?-----)(?:(?!-----END)[\s\S])*")
_LINE_OF_KEY = re.compile(r"(?m)^(?=[^\n]{0,60}[a-z])(?=[^\n]{0,60}[A-Z])(?=[^\n]{0,60}\d)[A-Za-z0-9+/]{60,}={0,2}$")
"""A line of a private key, where a program's output comes line by line."""
_HEADER = re.compile(
    r"(?i)(?P<before>\b(?:(?:proxy-)?authorization|(?:set-)?cookie2?)\\{0,3}['\"]?\s{0,3}"
    r"(?::(?!:)|=(?!=)|,(?=\s{0,3}b?['\"]))\s{0,3})"
    r"(?!\*{3}(?:[\s,)}\]]|$))"
    r"(?:digest\s[^\n]*|b?(?P<quote>\\{0,3}['\"])(?:(?!(?P=quote))[^\n])*(?P=quote)?|[^\s'\"][^'\"\n]*)"
)
"""Hidden to the end of the line or of the words in quotes: schemes and cookies have several parts."""
_SCHEME = re.compile(r"(?i)\b(?P<scheme>bearer|basic)(?P<space>\s{1,3})(?P<value>[\w.~+/-]{12,}={0,2})")
_NETRC = re.compile(
    r"(?im)(?P<before>\b(?:login|machine)\s{1,8}\S{1,256}\s{1,8}(?:account\s{1,8}\S{1,256}\s{1,8})?password\s{1,8}"
    r"|^\s{0,64}password[ \t]{1,8}(?=\S{1,4096}\s{0,8}$))\S+"
)
_LOGIN = re.compile(r"(?P<before>\blogin\s{1,8})(?P<value>[A-Za-z0-9]{24,256})\b")
"""A login by command with the key as its word: ``wandb login KEY``."""
_CURL_LOGIN = re.compile(
    r"(?P<before>(?:\s-u\s{0,3}|--(?:proxy-)?user[\s=]{1,3})['\"]?[^\s:'\"]{1,256}:)(?!\d+\b)[^\s'\"]+"
)

_NAME = re.compile(
    r"(?i)(?P<word>token|passw(?:or)?d|passphrase|pass|pwd|secrets?|credentials?|authorization|auth|username"
    r"|(?:api|access|private|account|signing|encryption)[_-]?key|key|signature|sig"
    r"|session[_-]?id|sessionid|cookie|(?<=[_-])pat)"
    r"(?P<rest>(?:[_-]|(?-i:(?<=[a-z])[A-Z]))[\w-]{0,64})?"
    r"(?P<sign>\s{0,8}:\s{0,8}(?:str|bytes|SecretStr|Optional\[str\]|str \| None)\s{0,8}=\s{0,8}"
    r"|\\{0,3}['\"]?\]?\s{0,8}(?:=>|:=|=(?!=)|:(?!:|//))\s{0,8}"
    r"|\\{0,3}['\"],\s{0,8}(?=[bu]?\\{0,3}['\"])|['\"]?[ \t]{1,8})"
)
_VALUE = re.compile(
    r"[bBuUrRfF]{0,2}(?:(?P<long>'''|\"\"\")(?:(?!(?P=long))[\s\S])*(?P=long)?"
    r"|(?P<escaped>\\{1,3}['\"])(?:(?!(?P=escaped))[^\n])*(?P=escaped)?"
    r"|'(?:[^'\\\n]|\\[^\n])*'?|\"(?:[^\"\\\n]|\\[^\n])*\"?)"
    r"|(?:(?i:bearer|basic|token|negotiate)\s{1,2})?"
    r"(?:[^\s'\",;&]|[,;&](?![\s'\"]|[\w.-]{0,40}[=:]|$)|['\"](?=\w))+"
)
_WORDS = (
    "token", "pass", "pwd", "secret", "credential", "auth", "username", "key", "sig", "session", "cookie",
    "_pat", "-pat",
)  # fmt: skip
"""One of these is in a text that `_NAME` matches, in lower case."""
_BOUND = frozenset(("pass", "auth", "username", "key", "sig", "signature", "pat", "cookie"))
"""Words that end others, such as bypass and monkey: names have them as parts of their own."""
_NAMES_ONLY = frozenset(("pass", "auth", "username", "credential", "credentials"))
"""Words of sentences too: before a colon, their value must look like a secret."""
_LOOKED_AT = frozenset(("key", "sig", "signature", "sessionid", "cookie", "pat"))
"""Names of much else: their value must look like a secret."""
_BEGINS_NAME = re.compile(r"[\w.-]{0,64}\Z")
_SETS = re.compile(r"(?:\bsetenv|\bENV)\s{1,8}\Z")
_RANDOM = re.compile(r"(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z0-9+]{16,}")
_PLAIN = re.compile(
    r"(?i:none|null|nil|true|false|undefined)|\*+|\.\.\.|\$\{\w+\}|\$[A-Z_]{2,}|\{\w*\}|</?\w{1,12}>|\[[A-Z]{1,12}\]"
    r"|(?:self|cls|os|args|kwargs|config|cfg|settings|options|getpass)[.\[(]\S*|[a-z_]+\(\)"
)
"""Values that are no secret whatever their name: placeholders, constants and expressions of code."""
_NUMBER = re.compile(r"[-+]?\d{1,6}(?:\.\d{1,6})*(?:=\w*)?")
"""Counts, and versions: ``token=42``, ``google-auth=2.3.0``."""
_AFTER_FLAG = re.compile(
    r"to|is|or|and|instead|requires?|required|option|flag|argument|must|for|with|in|if|when|was|has|not|as|can|value"
    r"|needs|expected|expects|on|from|cannot"
)
"""Words of sentences about an option."""


def redact_url(text: str) -> str:
    """Return `text` with user, password, channel token and secret query values of every URL in it hidden."""
    hidden = text
    if "@" in text:
        hidden = _CREDENTIALS.sub(lambda match: f"{match['scheme']}{HIDDEN}@", text)
        hidden = _WITHOUT_SCHEME.sub(lambda match: f"{match['before']}{HIDDEN}@", hidden)
    if "/t/" in hidden:
        hidden = _CHANNEL_TOKEN.sub(lambda match: f"{match['before'] or match['path']}{HIDDEN}", hidden)
    if "hooks" in hidden:
        hidden = _WEBHOOK.sub(rf"\1/{HIDDEN}", hidden)
    return _QUERY_SECRET.sub(rf"\1={HIDDEN}", hidden) if "=" in hidden else hidden


def redact_variable(name: str, value: str) -> str:
    """Value of an environment variable as it may be shared: all of it hidden where the name says secret."""
    named = _NAME.search(f"{name}=")
    while named is not None:
        word = _word(named)
        says = named.end() == len(name) + 1 and _stands(named) and not (word == "pwd" and value.startswith("/"))
        if value and says and (word not in _LOOKED_AT or (named["rest"] is None and _looks_random(value))):
            return HIDDEN
        named = _NAME.search(f"{name}=", named.start() + 1)
    return redact_text(value)


def is_secret(name: str, value: str) -> bool:
    """Whether an environment variable holds a secret, by its name or in its value."""
    return redact_variable(name, value) != value


def redact_text(text: str) -> str:
    """A program's output with secrets hidden: in URLs, headers, assignments and flags, and tokens of known services."""
    hidden, lower = redact_url(text), text.lower()
    if "private key" in lower:
        hidden = _PRIVATE_KEY.sub(rf"\1{HIDDEN}", hidden)
    if "authorization" in lower or "cookie" in lower:
        hidden = _HEADER.sub(_after, hidden)
    if "bearer" in lower or "basic" in lower:
        hidden = _SCHEME.sub(_scheme, hidden)
    if "login" in lower:
        hidden = _LOGIN.sub(lambda match: _after(match) if _looks_random(match["value"]) else match[0], hidden)
    if "password" in lower:
        hidden = _NETRC.sub(_after, hidden)
    if " -u" in lower or "user" in lower:
        hidden = _CURL_LOGIN.sub(_after, hidden)
    if any(word in lower for word in _WORDS):
        hidden = _without_assigned(hidden)
    if any(beginning in text for beginning in _BEGINNINGS):
        hidden = _KNOWN.sub(HIDDEN, hidden)
    return hidden if " " in text and "\n" not in text else _LINE_OF_KEY.sub(HIDDEN, hidden)


def _after(match: re.Match[str]) -> str:
    return f"{match['before']}{HIDDEN}"


def _scheme(match: re.Match[str]) -> str:
    value = match["value"]
    secret = value.endswith("=") or _looks_random(value) or len(value) >= 32  # noqa: PLR2004
    return f"{match['scheme']}{match['space']}{HIDDEN}" if secret else match[0]


def _without_assigned(text: str) -> str:
    """`text` with the value hidden of every name that says secret."""
    parts: list[str] = []
    done = at = 0
    while (named := _NAME.search(text, at)) is not None:
        # the value of a name that says nothing is searched in its turn: it may be a command line
        at = named.start() + len(named["word"])
        if not _stands(named):
            continue
        value = _VALUE.match(text, named.end())
        if value is None or not _is_secret_value(named, value[0]):
            continue
        shown = value[0].lstrip("'\"")
        tail = len(shown) - len(shown.rstrip(")]}>")) if not re.search(r"[(\[{<'\"]", value[0]) else 0
        at = value.end() - tail
        parts += [text[done : named.end()], HIDDEN]
        done = at
    return "".join((*parts, text[done:])) if parts else text


def _word(named: re.Match[str]) -> str:
    return named["word"].lower().replace("_", "").replace("-", "")


def _stands(named: re.Match[str]) -> bool:
    """Whether the word is a part of its own in a name, where it must be one."""
    start = named.start()
    before = named.string[start - 1 : start]
    return _word(named) not in _BOUND or not before.isalnum() or (before.islower() and named["word"][0].isupper())


def _is_secret_value(named: re.Match[str], value: str) -> bool:
    """Whether `value` is a secret, after a name and a sign between."""
    word, sign = _word(named), named["sign"]
    bare = re.sub(r"^[bBuUrRfF]{0,2}\\{0,3}['\"]{1,3}|\\{0,3}['\"]{1,3}$", "", value)
    plain = bare.rstrip(")]},:;") if value == bare else bare
    counted = word not in {"password", "passwd", "passphrase", "secret", "secrets", "pwd"}
    if not bare or _PLAIN.fullmatch(bare) or _PLAIN.fullmatch(plain) or (counted and _NUMBER.fullmatch(plain)):
        return False
    if word in {"pwd", *_LOOKED_AT} and bare.startswith(("/", "./", "~/")):
        return False
    if word in _LOOKED_AT:
        return named["rest"] is None and _looks_random(bare) and bool(sign.strip("'\"\\ \t"))
    if not sign.strip(" \t'\""):
        return _is_after_flag(named, plain)
    # a bare colon stands in sentences as well
    sentence = ":" in sign and not any(sure in sign for sure in "='\"")
    return not sentence or (named["rest"] is None and (word not in _NAMES_ONLY or _looks_random(bare)))


def _is_after_flag(named: re.Match[str], value: str) -> bool:
    """Whether a value after a blank belongs to a flag, as in ``--token X``, or to ``setenv TOKEN X``."""
    before = _BEGINS_NAME.search(named.string, max(0, named.start() - 64), named.start())
    assert before is not None  # noqa: S101  # the pattern matches nothing too
    if value.startswith("-") or _AFTER_FLAG.fullmatch(value) or value.upper() == named["word"].upper():
        return False
    return (
        before[0].startswith("-") or _SETS.search(named.string, max(0, before.start() - 16), before.start()) is not None
    )


def _looks_random(value: str) -> bool:
    return _RANDOM.search(value) is not None


def redact_words(words: Iterable[str]) -> list[str]:
    """A command line of somebody's without its secrets, also where they are words of their own: ``--token X``."""
    found: list[str] = []
    secret = False
    for word in words:
        found.append(HIDDEN if secret else redact_text(word))
        # a word that no secret looks like: what hides it is the name alone
        secret = word.startswith("-") and "=" not in word and redact_variable(word, "-") == HIDDEN
    return found
