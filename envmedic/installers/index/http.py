"""HTTP client with the user's proxies, netrc, certificates and logins; retries, and errors with a next step."""

from __future__ import annotations

import os
import re
import time
import warnings
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

import requests
from urllib3.exceptions import InsecureRequestWarning, NameResolutionError

from envmedic.errors import NetworkError
from envmedic.installers.index.configuration import IndexConfiguration
from envmedic.installers.index.credentials import host_of, logins, without_credentials

TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Statuses that a later attempt may not meet."""
DENIED = {401: "needs a login (401 Unauthorized)", 403: "refuses access (403 Forbidden)"}


@dataclass(frozen=True)
class Patience:
    """Timeouts and number of attempts of a request."""

    attempts: int = 5
    first_pause_s: float = 0.5
    """Doubled after each attempt."""
    connect_s: float = 15.0
    read_s: float = 60.0

    def pause(self, attempt: int) -> None:
        """Wait before attempt number `attempt` + 1."""
        time.sleep(self.first_pause_s * 2 ** (attempt - 1))


class IndexSession:
    """A `requests` session for the indexes of one configuration."""

    def __init__(self, configuration: IndexConfiguration, patience: Patience | None = None) -> None:
        self.patience = patience or Patience()
        self._logins = logins(configuration.urls)
        self._trusted = frozenset(configuration.pip.trusted_hosts)
        self._http = requests.Session()
        self._http.headers["Accept-Encoding"] = (
            "identity"  # with gzip, Content-Length and ranges would count compressed bytes
        )
        self._verify = certificates(configuration)
        # HTTPS_PROXY and its like still win: requests prefers them to the proxies of a session (psf/requests#2018).
        proxy = configuration.pip.proxy
        if proxy:
            self._http.proxies = {"http": proxy, "https": proxy}

    def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        accept: Collection[int] = (200,),
        stream: bool = False,
    ) -> requests.Response:
        """Return an answer whose status is in `accept`, trying again what may pass. Raises `NetworkError`."""
        attempt = 0
        while True:
            attempt += 1
            try:
                return self.once(method, url, headers=headers, accept=accept, stream=stream)
            except (requests.RequestException, TransientStatus) as error:
                if attempt >= self.patience.attempts or not may_pass(error):
                    raise network_error(url, error) from error
            self.patience.pause(attempt)

    def once(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        accept: Collection[int] = (200,),
        stream: bool = False,
    ) -> requests.Response:
        """One try. Raises `requests.RequestException`, `TransientStatus` or `NetworkError`."""
        # pip takes a trusted host with and without a port.
        trusted = urlsplit(url).hostname in self._trusted or urlsplit(url).netloc in self._trusted
        with warnings.catch_warnings():
            if trusted:  # the user's own trusted-host setting: a warning per request says nothing new
                warnings.simplefilter("ignore", InsecureRequestWarning)
            answer = self._http.request(
                method,
                url,
                headers=dict(headers or {}),
                auth=self._logins.get(host_of(url)),
                timeout=(self.patience.connect_s, self.patience.read_s),
                allow_redirects=True,
                stream=stream,
                verify=False if trusted else self._verify,
            )
        if answer.status_code in accept:
            return answer
        # A streamed answer that nobody reads would keep its connection out of the pool.
        answer.close()
        if answer.status_code in TRANSIENT:
            raise TransientStatus(answer.status_code)
        raise refused(url, answer.status_code)

    def close(self) -> None:
        """Close its connections."""
        self._http.close()


class TransientStatus(Exception):
    """The server answered with a status that may pass."""

    def __init__(self, status: int) -> None:
        super().__init__(f"the server answered {status}")
        self.status = status


def may_pass(error: Exception) -> bool:
    """Whether trying again can help; a wrong certificate, proxy or host name stays wrong."""
    # Both are subclasses of ConnectionError, so they must be asked for first.
    if isinstance(error, requests.exceptions.SSLError | requests.exceptions.ProxyError):
        return False
    return isinstance(error, requests.ConnectionError | requests.Timeout | TransientStatus) or is_broken(error)


def is_broken(error: Exception) -> bool:
    """Whether the connection ended in the middle of an answer."""
    return isinstance(error, requests.exceptions.ChunkedEncodingError | requests.exceptions.ContentDecodingError)


def certificates(configuration: IndexConfiguration, environ: Mapping[str, str] = os.environ) -> str | bool:
    """The certificate bundle: of REQUESTS_CA_BUNDLE or CURL_CA_BUNDLE, else pip's, else SSL_CERT_FILE's."""
    # requests itself reads the first two only while `verify` is True; SSL_CERT_FILE it does not know, uv does.
    own = environ.get("REQUESTS_CA_BUNDLE") or environ.get("CURL_CA_BUNDLE")
    return own or configuration.pip.cert or environ.get("SSL_CERT_FILE") or True


def refused(url: str, status: int) -> NetworkError:
    """The error for a status that will not pass."""
    shown = without_credentials(url)
    hint = "Check the URL of the index, or give a directory of wheels with --find-links"
    if status in DENIED:
        hint = f"Add a login for {urlsplit(shown).netloc} to the index URL or to ~/.netrc"
    return NetworkError(f"{shown} cannot be read", cause=DENIED.get(status, f"the server answered {status}"), hint=hint)


def network_error(url: str, error: Exception) -> NetworkError:
    """The error for a request that failed for good."""
    cause, hint = _explain(error)
    return NetworkError(f"{host_of(url)} cannot be reached", cause=cause, hint=hint)


def _explain(error: Exception) -> tuple[str, str]:
    """Cause and next step."""
    # requests wraps urllib3's MaxRetryError, whose `reason` is the actual failure.
    reason = getattr(error.args[0], "reason", None) if error.args else None
    if isinstance(error, requests.exceptions.SSLError):
        return "its TLS certificate is not accepted", "Name your organisation's certificates with SSL_CERT_FILE"
    if isinstance(error, requests.exceptions.ProxyError):
        return "the proxy does not let the request through", "Check HTTPS_PROXY and pip's proxy setting"
    if isinstance(error, TransientStatus):
        return str(error), "Try again later, or use another index"
    return _connection_cause(error, reason), "Check network and proxy, or use --offline with --find-links DIR"


def _connection_cause(error: Exception, reason: object) -> str:
    if isinstance(reason, NameResolutionError):
        return "its host name does not resolve"
    if isinstance(error, requests.Timeout):
        return "it did not answer in time"
    if is_broken(error):
        return "the connection broke off in the middle of an answer, repeatedly"
    # urllib3 begins with the representation of its connection
    told = re.sub(r"^<?[\w.]*(?:Connection|Pool)[^>]*>?: ", "", " ".join(str(reason or error).split()))
    return f"the connection failed: {told}"


@contextmanager
def opened(configuration: IndexConfiguration, patience: Patience | None = None) -> Iterator[IndexSession]:
    """A session that is closed at the end of the block."""
    session = IndexSession(configuration, patience)
    try:
        yield session
    finally:
        session.close()
