"""HTTP client with the user's proxies, netrc, certificates and logins; retries, and errors with a next step."""

from __future__ import annotations

import os
import re
import time
import warnings
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import certifi
from urllib3 import BaseHTTPResponse, PoolManager, ProxyManager, Timeout
from urllib3.exceptions import (
    DecodeError,
    HTTPError,
    InsecureRequestWarning,
    NameResolutionError,
    NewConnectionError,
    ProtocolError,
    ProxyError,
    SSLError,
    TimeoutError,  # noqa: A004  # urllib3's own is another
)

from envmedic.errors import NetworkError
from envmedic.installers.index.configuration import IndexConfiguration
from envmedic.installers.index.credentials import (
    authorization,
    host_of,
    login_of,
    logins,
    netrc_login,
    without_credentials,
)
from envmedic.installers.index.proxies import proxy_of

REDIRECTS = 20
"""The most that one request is sent on."""
CONNECTIONS = 16
"""Kept open to one host: as many as threads ask at once."""
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
    """Requests to the indexes of one configuration, whose connections stay open."""

    def __init__(self, configuration: IndexConfiguration, patience: Patience | None = None) -> None:
        self.patience = patience or Patience()
        self._logins = logins(configuration.urls)
        self._trusted = frozenset(configuration.pip.trusted_hosts)
        self._certificates = certificates(configuration)
        self._proxy = configuration.pip.proxy
        self._pools: dict[tuple[str | None, bool], PoolManager] = {}

    def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        accept: Collection[int] = (200,),
        stream: bool = False,
    ) -> BaseHTTPResponse:
        """Return an answer whose status is in `accept`, trying again what may pass. Raises `NetworkError`.

        The content of one with `stream` is not read yet; `streamed` has the errors of that.
        """
        attempt = 0
        while True:
            attempt += 1
            try:
                return self.once(method, url, headers=headers, accept=accept, stream=stream)
            except (HTTPError, TransientStatus) as error:
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
    ) -> BaseHTTPResponse:
        """One try. Raises `urllib3.exceptions.HTTPError`, `TransientStatus` or `NetworkError`."""
        place = url
        for _ in range(REDIRECTS):
            answer = self._sent(method, place, headers or {}, stream=stream)
            location = answer.get_redirect_location()
            if not location:
                break
            answer.close()
            try:
                place = urljoin(place, location)
            except ValueError:  # no address
                break
        if answer.status in accept:
            return answer
        # A streamed answer that nobody reads would keep its connection out of the pool.
        answer.close()
        if answer.status in TRANSIENT:
            raise TransientStatus(answer.status)
        raise refused(url, answer.status)

    @contextmanager
    def streamed(
        self, url: str, *, headers: Mapping[str, str] | None = None, accept: Collection[int] = (200,)
    ) -> Iterator[BaseHTTPResponse]:
        """An answer of which the block reads what it wants. Raises `NetworkError`, also where it breaks off."""
        try:
            with self.request("GET", url, headers=headers, accept=accept, stream=True) as answer:
                yield answer
        except HTTPError as error:
            raise network_error(url, error) from error

    def _sent(self, method: str, url: str, headers: Mapping[str, str], *, stream: bool) -> BaseHTTPResponse:
        """The answer of one server, with the login for it and for no other."""
        login = self._logins.get(host_of(url)) or login_of(url) or netrc_login(url)
        # pip takes a trusted host with and without a port.
        trusted = urlsplit(url).hostname in self._trusted or urlsplit(url).netloc in self._trusted
        with warnings.catch_warnings() if trusted else nullcontext():
            if trusted:  # the user's own trusted-host setting: a warning per request says nothing new
                warnings.simplefilter("ignore", InsecureRequestWarning)
            return self._pool(proxy_of(url, self._proxy), trusted=trusted).urlopen(
                method,
                without_credentials(url),
                # with gzip, Content-Length and ranges would count compressed bytes
                headers={"Accept-Encoding": "identity", **headers, **(authorization(login) if login else {})},
                timeout=Timeout(connect=self.patience.connect_s, read=self.patience.read_s),
                preload_content=not stream,
                redirect=False,
                retries=False,
            )

    def _pool(self, proxy: str | None, *, trusted: bool) -> PoolManager:
        """The connections that go by `proxy`, with certificates verified or not."""
        known = self._pools.get((proxy, trusted))
        if known is not None:
            return known
        tls: dict[str, Any] = {"cert_reqs": "CERT_NONE"}
        if not trusted:
            folder = Path(self._certificates).is_dir()
            tls = {"cert_reqs": "CERT_REQUIRED", "ca_cert_dir" if folder else "ca_certs": self._certificates}
        if proxy is None:
            made = PoolManager(maxsize=CONNECTIONS, **tls)
        else:
            login = login_of(proxy)
            shown = authorization(login, "Proxy-Authorization") if login else None
            made = ProxyManager(without_credentials(proxy), proxy_headers=shown, maxsize=CONNECTIONS, **tls)
        return self._pools.setdefault((proxy, trusted), made)

    def close(self) -> None:
        """Close its connections."""
        for pool in self._pools.values():
            pool.clear()


class TransientStatus(Exception):
    """The server answered with a status that may pass."""

    def __init__(self, status: int) -> None:
        super().__init__(f"the server answered {status}")
        self.status = status


def may_pass(error: Exception) -> bool:
    """Whether trying again can help; a wrong certificate, proxy or address stays wrong."""
    # the error of a proxy wraps what else would count
    return isinstance(error, NewConnectionError | TimeoutError | ProtocolError | DecodeError | TransientStatus)


def certificates(configuration: IndexConfiguration, environ: Mapping[str, str] = os.environ) -> str:
    """The certificates to trust: of REQUESTS_CA_BUNDLE, CURL_CA_BUNDLE, pip's setting, SSL_CERT_FILE, else Mozilla's."""
    own = environ.get("REQUESTS_CA_BUNDLE") or environ.get("CURL_CA_BUNDLE")
    return own or configuration.pip.cert or environ.get("SSL_CERT_FILE") or certifi.where()


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
    if isinstance(error, SSLError):
        return "its TLS certificate is not accepted", "Name your organisation's certificates with SSL_CERT_FILE"
    if isinstance(error, ProxyError):
        return "the proxy does not let the request through", "Check HTTPS_PROXY and pip's proxy setting"
    if isinstance(error, TransientStatus):
        return str(error), "Try again later, or use another index"
    return _connection_cause(error), "Check network and proxy, or use --offline with --find-links DIR"


def _connection_cause(error: Exception) -> str:
    if isinstance(error, NameResolutionError):
        return "its host name does not resolve"
    if isinstance(error, TimeoutError) and not isinstance(error, NewConnectionError):
        return "it did not answer in time"
    if isinstance(error, ProtocolError | DecodeError):
        return "the connection broke off in the middle of an answer, repeatedly"
    # urllib3 begins with the representation of its connection
    told = re.sub(r"^<?[\w.]*(?:Connection|Pool)[^>]*>?: ", "", " ".join(str(error).split()))
    return f"the connection failed: {told}"


@contextmanager
def opened(configuration: IndexConfiguration, patience: Patience | None = None) -> Iterator[IndexSession]:
    """A session that is closed at the end of the block."""
    session = IndexSession(configuration, patience)
    try:
        yield session
    finally:
        session.close()
