"""What uv itself says when something is wrong, as errors with a cause and a next step."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from envmedic.errors import EnvmedicError, InstallerError, NetworkError, NoSolution, StorageError
from envmedic.installers.resolution.uv_errors import error_from
from envmedic.installers.uv import UvInstaller
from envmedic.model.ports import CommandResult, ResolveRequest
from tests.installers.observed import environment
from tests.support.index import CERTIFICATE, Fault, IndexServer, write_index
from tests.support.wheels import make_wheel


def failure(prefix: Path, index: str, monkeypatch: pytest.MonkeyPatch, pin: str = "app==1.0") -> EnvmedicError:
    """The error of resolving `pin` from `index`."""
    monkeypatch.setenv("PIP_INDEX_URL", index)
    with pytest.raises(EnvmedicError) as raised:
        UvInstaller().resolve(ResolveRequest(pins=(pin,)), environment(prefix), lambda _: None)
    assert raised.value.hint
    assert raised.value.details
    return raised.value


@pytest.fixture
def server(tmp_path: Path, index_server: IndexServer) -> IndexServer:
    """A server with one distribution."""
    write_index(index_server.root, [make_wheel(tmp_path / "w", "app", "1.0")])
    return index_server


def test_a_closed_port(venv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    error = failure(venv, "http://127.0.0.1:9/simple", monkeypatch)
    assert isinstance(error, NetworkError)
    assert error.summary == "http://127.0.0.1:9/simple/app cannot be reached"
    assert error.cause == "the connection was refused"
    assert "Connection refused" in error.details[-1]
    assert "os error" not in "".join(error.details)


def test_a_host_name_that_does_not_resolve(venv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    error = failure(venv, "http://no-such-host.invalid/simple", monkeypatch)
    assert isinstance(error, NetworkError)
    assert error.cause == "its host name does not resolve"


def test_a_server_that_never_answers(venv: Path, server: IndexServer, monkeypatch: pytest.MonkeyPatch) -> None:
    server.faults = [Fault("/simple/app", hang=True)]
    error = failure(venv, server.url, monkeypatch)
    assert isinstance(error, NetworkError)
    assert error.cause == "it did not answer in time"


def test_a_server_that_fails(venv: Path, server: IndexServer, monkeypatch: pytest.MonkeyPatch) -> None:
    server.faults = [Fault("/simple/app", status=500)]
    error = failure(venv, server.url, monkeypatch)
    assert isinstance(error, NetworkError)
    assert error.cause == "it answers 500 Internal Server Error"


def test_a_connection_that_breaks_off(venv: Path, server: IndexServer, monkeypatch: pytest.MonkeyPatch) -> None:
    server.faults = [Fault("/simple/app", cut_after=10)]
    assert isinstance(failure(venv, server.url, monkeypatch), NetworkError)


@pytest.mark.parametrize(("status", "words"), [(401, "401 Unauthorized"), (403, "403 Forbidden")])
def test_access_that_is_denied_is_said_and_names_no_password(
    status: int, words: str, venv: Path, server: IndexServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.faults = [Fault("/simple", status=status)]
    url = f"http://someone:s3cret@127.0.0.1:{server.port}/simple"
    error = failure(venv, url, monkeypatch)
    assert isinstance(error, NetworkError)
    assert error.cause == f"it answers {words}"
    assert "s3cret" not in "".join((error.summary, error.cause, *error.details))


def test_a_certificate_that_nobody_signed(venv: Path, server: IndexServer, monkeypatch: pytest.MonkeyPatch) -> None:
    server.secure()
    error = failure(venv, server.url.replace("http:", "https:"), monkeypatch)
    assert isinstance(error, NetworkError)
    assert error.cause == "its TLS certificate is not accepted"
    assert "SSL_CERT_FILE" in str(error.hint)


def test_pip_cert_makes_the_certificate_good(venv: Path, server: IndexServer, monkeypatch: pytest.MonkeyPatch) -> None:
    server.secure()
    monkeypatch.setenv("PIP_CERT", str(CERTIFICATE))
    monkeypatch.setenv("PIP_INDEX_URL", server.url.replace("http:", "https:"))
    installer = UvInstaller()
    resolution = installer.resolve(ResolveRequest(pins=("app==1.0",)), environment(venv), lambda _: None)
    installer.fetch(resolution.artifacts, offline=False, emit=lambda _: None)
    assert Path(resolution.artifacts[0].local_path).is_file()


def test_a_server_without_tls(venv: Path, server: IndexServer, monkeypatch: pytest.MonkeyPatch) -> None:
    error = failure(venv, server.url.replace("http:", "https:"), monkeypatch)
    assert isinstance(error, NetworkError)
    assert error.cause == "it does not speak TLS as expected"


def test_a_version_that_does_not_exist(venv: Path, server: IndexServer, monkeypatch: pytest.MonkeyPatch) -> None:
    error = failure(venv, server.url, monkeypatch, "app==9.9")
    assert isinstance(error, NoSolution)
    assert "there is no version of app==9.9" in str(error.cause)


def test_a_name_that_does_not_exist(venv: Path, server: IndexServer, monkeypatch: pytest.MonkeyPatch) -> None:
    error = failure(venv, server.url, monkeypatch, "nothing==1")
    assert isinstance(error, NoSolution)
    assert "nothing was not found" in str(error.cause)


def test_no_wheel_for_this_python(venv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = make_wheel(tmp_path / "w", "app", "1.0", tags=("cp27-cp27m-manylinux2014_x86_64",))
    error = failure(venv, write_index(tmp_path / "i", [wheel]), monkeypatch)
    assert isinstance(error, NoSolution)
    assert "no wheels with a matching Python" in str(error.cause)


def test_offline_without_the_index_in_the_cache(venv: Path) -> None:
    with pytest.raises(NoSolution) as raised:
        UvInstaller().resolve(ResolveRequest(pins=("app==1.0",), offline=True), environment(venv), lambda _: None)
    assert raised.value.hint == "Run without --offline, or give a directory of wheels with --find-links"


@pytest.mark.skipif(os.getuid() != 0, reason="a file system is mounted")
def test_a_full_cache(venv: Path, tmp_path: Path, server: IndexServer, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(cache)], check=False)
    if mounted.returncode != 0:
        pytest.skip("no file system can be mounted here")
    try:
        monkeypatch.setenv("UV_CACHE_DIR", str(cache))
        error = failure(venv, server.url, monkeypatch)
    finally:
        subprocess.run(["umount", str(cache)], check=True)
    assert isinstance(error, StorageError)
    assert error.summary == "There is no room left for uv"
    assert str(cache) in str(error.cause)
    assert str(error.cause).endswith("No space left on device")
    assert "UV_CACHE_DIR" in str(error.hint)


def test_anything_else_carries_the_output(venv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_CONFIG_FILE", str(tmp_path / "not-there.toml"))
    error = failure(venv, "file:///nowhere", monkeypatch)
    assert type(error) is InstallerError
    assert "not-there.toml" in "".join(error.details)


def test_a_long_explanation_of_which_only_the_end_is_kept_is_no_solution() -> None:
    end = "  |          And because you require app>1 and app<2, we can conclude that your requirements are unsatisfiable.\n"
    cut = CommandResult(argv=("uv",), returncode=1, stderr=end)
    assert isinstance(error_from(cut, ("app>1",)), NoSolution)
