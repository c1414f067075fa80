"""Translation of uv's failures to errors of envmedic, with a cause and a next step.

uv prints ``error:``, indented ``cause:`` lines and ``hint:`` paragraphs (older releases: a
cross and an arrow). The messages matched here are produced by uv itself in ``tests/installers``.
"""

from __future__ import annotations

import re
import signal

from envmedic.errors import (
    EnvmedicError,
    InstallerError,
    IntegrityError,
    Killed,
    NetworkError,
    NoSolution,
    StorageError,
)
from envmedic.installers.index.credentials import host_of, redacted
from envmedic.model.ports import CommandResult

KEPT_LINES = 40
"""Number of output lines in the details of an error."""

_NO_CACHE = "Set HOME, XDG_CACHE_HOME or UV_CACHE_DIR to a directory in which you can write"
_UNKNOWN = "Read uv's output above; its own configuration may be at fault"
_URL = re.compile(r"https?://[^\s)`,]+")
_CHECK_NETWORK = "Check network and proxy, or use --offline with --find-links DIR"
_CERTIFICATE = "Name your organisation's certificates with SSL_CERT_FILE, or pip's cert setting"
_NETWORK: tuple[tuple[str, str, str], ...] = (
    # The order matters: the texts further down ("error sending request") stand in the same output as a specific cause.
    (r"dns error|failed to lookup address", "its host name does not resolve", _CHECK_NETWORK),
    (r"operation timed out|timed out|timeout", "it did not answer in time", _CHECK_NETWORK),
    (r"invalid peer certificate", "its TLS certificate is not accepted", _CERTIFICATE),
    (r"InvalidContentType|received corrupt message|tls handshake", "it does not speak TLS as expected", _CHECK_NETWORK),
    (r"Connection refused", "the connection was refused", _CHECK_NETWORK),
    (r"Connection reset|connection closed|end of file|unexpected EOF", "the connection broke off", _CHECK_NETWORK),
    (r"Network is unreachable|No route to host", "there is no route to it", _CHECK_NETWORK),
    (r"HTTP status (?:client|server) error", "", "Try again later, or check the URL of the index"),
    (r"Failed to fetch|error sending request|Request failed", "the request failed", _CHECK_NETWORK),
)
_STATUS = re.compile(r"HTTP status (?:client|server) error \((\d{3} [^)]*)\)")
_DAMAGED = re.compile(r"Failed to extract archive|Failed to read from zip file|invalid package format")
_OWN_FILES = re.compile(r"^warning: Requirements file .* does not contain any dependencies")
"""Warning about our own file of constraints, which is empty when nothing was excluded."""
_FULL = re.compile(r"No space left on device|[Dd]isk quota exceeded")
_NUMBER = re.compile(r" \(os error \d+\)")
"""The number that Rust adds to the words of the kernel, which say the same."""
_UNSOLVABLE = re.compile(r"No solution found|requirements are unsatisfiable")
"""How uv's explanation begins and ends: of a long one only the end is kept."""
_DENIED = re.compile(r"\b(401 Unauthorized|403 Forbidden)\b")


def error_from(result: CommandResult, pins: tuple[str, ...], variant_index: str | None = None) -> EnvmedicError:
    """The error for a `uv pip compile` that failed; `variant_index` is the PyTorch index, where it was asked."""
    # SIGKILL that was not ours: the OOM killer or the user, and nothing about the environment.
    if result.signal == signal.SIGKILL and not result.timed_out:
        return Killed("uv")
    output = _NUMBER.sub("", redacted(result.stderr + result.stdout))
    lines = [line for line in output.strip().splitlines() if not _OWN_FILES.search(line)]
    details = tuple(lines[-KEPT_LINES:])
    # First: where nothing can be written, whatever else went wrong follows.
    if _FULL.search(output):
        return _full(lines, details)
    # Before "No solution found": after 401 or 403 uv treats the index as one without the package, and its conclusion
    # misleads.
    if _DENIED.search(output):
        return _denied(output, details)
    if _DAMAGED.search(output):
        return _damaged(output, details, pins)
    if _UNSOLVABLE.search(output):
        return _no_solution(output, details, pins)
    network = _network(output, details)
    if network is not None and variant_index is not None and host_of(variant_index) in network.summary:
        network.hint = "Name a mirror of the PyTorch index with --torch-index, or give wheels with --find-links"
    return network or InstallerError(
        f"uv could not resolve {', '.join(pins)}",
        cause=_first_cause(output) or _ending(result),
        hint=_NO_CACHE if "Failed to initialize cache" in output else _UNKNOWN,
        details=details,
    )


def _ending(result: CommandResult) -> str:
    """How uv ended, for one that printed no cause."""
    if result.timed_out:
        return f"it took longer than {result.seconds:.0f} s"
    return (
        f"it exited with status {result.returncode}"
        if result.signal is None
        else f"it was ended by signal {result.signal}"
    )


def _full(lines: list[str], details: tuple[str, ...]) -> StorageError:
    last = next(number for number, line in enumerate(lines) if _FULL.search(line))
    # uv's line above the kernel's words says what could not be written
    told = (line.strip().removeprefix("cause: ") for line in lines[max(last - 1, 0) : last + 1])
    return StorageError(
        "There is no room left for uv",
        cause=": ".join(told),
        hint="Make room there, or set UV_CACHE_DIR and TMPDIR to directories on another file system",
        details=details,
    )


def _denied(output: str, details: tuple[str, ...]) -> NetworkError:
    match = _DENIED.search(output)
    url = _URL.search(output)
    where = url[0].rstrip("/.") if url else "an index"
    return NetworkError(
        f"{where} cannot be read",
        cause=f"it answers {match[1] if match else 'no'}",
        hint="Add a login to the index URL or to ~/.netrc",
        details=details,
    )


def _damaged(output: str, details: tuple[str, ...], pins: tuple[str, ...]) -> IntegrityError:
    wheel = re.search(r"[\w.+-]+\.whl", output)
    return IntegrityError(
        f"{wheel[0] if wheel else 'A wheel for ' + ', '.join(pins)} is damaged: it is no readable zip archive",
        cause=_first_cause(output),
        hint="Fetch it again, or take it out of the directory or index that uv found it in",
        details=details,
    )


def _no_solution(output: str, details: tuple[str, ...], pins: tuple[str, ...]) -> NoSolution:
    offline = "network was disabled" in output
    hint = "Give a directory that holds it with --find-links, or add the index that has it to pip's configuration"
    return NoSolution(
        f"No wheel for {', '.join(pins)} can be had here",
        cause=_first_cause(output),
        hint="Run without --offline, or give a directory of wheels with --find-links" if offline else hint,
        details=details,
    )


def _network(output: str, details: tuple[str, ...]) -> NetworkError | None:
    for pattern, cause, hint in _NETWORK:
        if re.search(pattern, output, re.IGNORECASE):
            url = _URL.search(output)
            status = _STATUS.search(output)
            return NetworkError(
                f"{url[0].rstrip('/.') if url else 'An index'} cannot be reached",
                cause=cause or f"it answers {status[1] if status else 'an error'}",
                hint=hint,
                details=details,
            )
    return None


def _first_cause(output: str) -> str | None:
    """Uv's own reason in one line: the text after its first ``cause:`` or ``╰─▶``, else its error line."""
    # The forms of several releases of uv; further causes of a chain are in the details.
    match = re.search(
        r"(?:^\s*cause:|╰─▶|Caused by:)\s*(.+?)(?=\n\s*\n|\n\s*cause:|\Z)", output, re.DOTALL | re.MULTILINE
    )
    match = match or re.search(r"^error:\s*(.+)$", output, re.MULTILINE)
    return " ".join(match[1].split()) if match else None
