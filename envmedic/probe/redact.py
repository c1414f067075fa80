"""Keeping secrets out of what is shown and shared."""

from __future__ import annotations

from envmedic.regex import compile_late

HIDDEN = "***"
_CREDENTIALS = compile_late(r"(?P<scheme>\b[a-zA-Z][a-zA-Z0-9+.-]*://)(?P<user>[^/\s?#]*)@")
_QUERY_SECRET = compile_late(r"(?i)([?&;](?:[a-z_-]*(?:token|key|secret|password|signature|sig)))=[^&#\s]+")
_SECRET_NAME = compile_late(
    r"(?i)(?:^|_)(?:TOKEN|PASSWORD|PASSWD|PASS|SECRET|SECRETS|CREDENTIAL|CREDENTIALS|APIKEY|API_KEY|ACCESS_KEY|"
    r"PRIVATE_KEY|AUTH|USERNAME)(?:$|_)"
)


def redact_url(text: str) -> str:
    """Return `text` with user, password and secret query values of every URL in it hidden."""
    hidden = _CREDENTIALS.sub(lambda match: f"{match['scheme']}{HIDDEN}@", text)
    return _QUERY_SECRET.sub(rf"\1={HIDDEN}", hidden)


def redact_variable(name: str, value: str) -> str:
    """Value of an environment variable as it may be shared: all of it hidden where the name says secret."""
    return HIDDEN if value and _SECRET_NAME.search(name) else redact_url(value)
