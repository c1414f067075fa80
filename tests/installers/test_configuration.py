"""pip's and uv's configuration files and variables, in their own order of precedence."""

from __future__ import annotations

from pathlib import Path

import pytest

from envmedic.errors import InputError
from envmedic.installers.index import configuration
from envmedic.installers.index.credentials import logins, redacted, without_credentials
from envmedic.installers.resolution.uv_options import translate
from envmedic.model.ports import ResolveRequest


@pytest.fixture
def environ(quick: Path) -> dict[str, str]:
    """Variables of a user with an empty home."""
    return {"HOME": str(quick), "XDG_CONFIG_DIRS": str(quick / "xdg")}


def write(path: Path, text: str) -> None:
    """Write a file and its directories."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def options(environ: dict[str, str], **request: object) -> tuple[str, ...]:
    """uv's arguments under these variables."""
    wanted = ResolveRequest(pins=("app==1",), **request)  # type: ignore[arg-type]
    return translate(configuration.read(None, environ), wanted, environ).arguments


def test_the_environments_own_file_beats_the_users_and_variables_beat_both(
    environ: dict[str, str], quick: Path
) -> None:
    write(
        quick / ".config/pip/pip.conf", "[global]\nindex-url = http://user/simple\ncert = /user.pem\nproxy = http://p\n"
    )
    write(quick / "env/pip.conf", "[global]\nindex_url = http://env/simple\ncert = /env.pem\n")
    read = configuration.read_pip(quick / "env", {**environ, "PIP_CERT": "/variable.pem"})
    assert (read.index_url, read.cert, read.proxy) == ("http://env/simple", "/variable.pem", "http://p")


def test_the_install_section_beats_the_global_one_of_any_file(environ: dict[str, str], quick: Path) -> None:
    write(quick / "xdg/pip/pip.conf", "[install]\nindex-url = http://install/simple\n")
    write(quick / ".pip/pip.conf", "[global]\nindex-url = http://global/simple\n")
    assert configuration.read_pip(None, environ).index_url == "http://install/simple"


def test_a_named_file_replaces_the_users(environ: dict[str, str], quick: Path) -> None:
    write(quick / ".config/pip/pip.conf", "[global]\nno-index = true\n")
    write(quick / "named.conf", "[global]\nfind-links =\n  /one\n  /two\n")
    read = configuration.read_pip(None, {**environ, "PIP_CONFIG_FILE": str(quick / "named.conf")})
    assert (read.no_index, read.find_links) == (False, ("/one", "/two"))


def test_no_file_is_read_when_the_named_one_is_the_null_device(environ: dict[str, str], quick: Path) -> None:
    write(quick / ".config/pip/pip.conf", "[global]\nindex-url = http://user/simple\n")
    assert configuration.read_pip(None, {**environ, "PIP_CONFIG_FILE": "/dev/null"}).index_url is None


def test_a_file_that_pip_could_not_read_is_named(environ: dict[str, str], quick: Path) -> None:
    write(quick / ".config/pip/pip.conf", "index-url = http://user/simple\n")
    with pytest.raises(InputError, match=r"pip\.conf cannot be read as a configuration file"):
        configuration.read_pip(None, environ)


def test_a_file_that_uv_could_not_read_is_named(environ: dict[str, str], quick: Path) -> None:
    write(quick / ".config/uv/uv.toml", "index-url = \n")
    with pytest.raises(InputError, match=r"uv\.toml cannot be read as a configuration file"):
        configuration.read_uv(environ)


def test_pip_settings_become_uv_options(environ: dict[str, str], quick: Path) -> None:
    environ |= {
        "PIP_CONFIG_FILE": "/dev/null",
        "PIP_INDEX_URL": "http://main/simple",
        "PIP_EXTRA_INDEX_URL": "http://a/simple http://b/simple",
        "PIP_FIND_LINKS": f"{quick} /does/not/exist",
        "PIP_CONSTRAINT": "/constraints.txt",
        "PIP_TRUSTED_HOST": "main",
    }
    assert options(environ) == (
        f"--find-links={quick}",
        "--index=http://a/simple",
        "--index=http://b/simple",
        "--default-index=http://main/simple",
        "-c",
        "/constraints.txt",
        "--allow-insecure-host=main",
        "--index-strategy=unsafe-best-match",
    )


def test_no_index_leaves_the_indexes_out(environ: dict[str, str]) -> None:
    environ |= {"PIP_CONFIG_FILE": "/dev/null", "PIP_NO_INDEX": "1", "PIP_EXTRA_INDEX_URL": "http://a/simple"}
    assert options(environ) == ("--no-index",)


@pytest.mark.parametrize("variable", ["UV_DEFAULT_INDEX", "UV_INDEX_URL"])
def test_an_index_of_uvs_own_is_not_overridden(variable: str, environ: dict[str, str]) -> None:
    environ |= {"PIP_CONFIG_FILE": "/dev/null", "PIP_INDEX_URL": "http://pip/simple", variable: "http://uv/simple"}
    assert options(environ) == ()


@pytest.mark.parametrize(
    "text",
    [
        'index-url = "http://uv/simple"',
        '[pip]\nindex-url = "http://uv/simple"',
        '[[index]]\nname = "main"\nurl = "http://uv/simple"\ndefault = true',
    ],
    ids=["top", "pip table", "named"],
)
def test_a_default_index_in_uvs_file_is_seen(text: str, environ: dict[str, str], quick: Path) -> None:
    write(quick / ".config/uv/uv.toml", text)
    assert configuration.read_uv(environ).default_index == "http://uv/simple"
    assert configuration.read_uv({**environ, "UV_NO_CONFIG": "1"}).default_index is None


def test_a_project_table_of_uv_is_seen(
    environ: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "project/pyproject.toml", '[tool.uv]\nindex-strategy = "first-index"\nno-index = true\n')
    (tmp_path / "project/deep").mkdir()
    monkeypatch.chdir(tmp_path / "project/deep")
    read = configuration.read_uv(environ)
    assert (read.strategy, read.no_index) == ("first-index", True)


def test_logins_of_named_indexes_come_from_variables(environ: dict[str, str], quick: Path) -> None:
    write(quick / ".config/uv/uv.toml", '[[index]]\nname = "my-mirror"\nurl = "https://mirror/simple"\n')
    environ |= {"UV_INDEX_MY_MIRROR_USERNAME": "me", "UV_INDEX_MY_MIRROR_PASSWORD": "p@ss"}
    read = configuration.read(None, {**environ, "UV_INDEX": "other=https://a:b@other/simple"})
    assert logins(read.urls) == {"https://mirror": ("me", "p@ss"), "https://other": ("a", "b")}


def test_certificates_and_proxy_become_uvs_variables(environ: dict[str, str]) -> None:
    environ |= {"PIP_CONFIG_FILE": "/dev/null", "PIP_CERT": "/pip.pem", "PIP_PROXY": "http://proxy:1"}
    wanted = ResolveRequest(pins=())
    given = translate(configuration.read(None, environ), wanted, environ).environment
    assert (given["SSL_CERT_FILE"], given["ALL_PROXY"]) == ("/pip.pem", "http://proxy:1")
    environ |= {"SSL_CERT_FILE": "/own.pem", "HTTPS_PROXY": "http://own:1"}
    given = translate(configuration.read(None, environ), wanted, environ).environment
    assert "SSL_CERT_FILE" not in given
    assert "ALL_PROXY" not in given


def test_uv_variables_that_would_change_the_plan_are_unset(environ: dict[str, str]) -> None:
    given = translate(configuration.read(None, environ), ResolveRequest(pins=()), environ).environment
    assert given["UV_TORCH_BACKEND"] is None


def test_indexes_are_reported_without_credentials(environ: dict[str, str]) -> None:
    environ |= {"PIP_CONFIG_FILE": "/dev/null", "PIP_INDEX_URL": "https://me:secret@host/simple"}
    read = translate(configuration.read(None, environ), ResolveRequest(pins=()), environ)
    assert read.indexes == ("https://host/simple",)
    assert "--default-index=https://me:secret@host/simple" in read.arguments


@pytest.mark.parametrize(
    ("url", "clean"),
    [
        ("https://me:secret@host:8443/a?b#c", "https://host:8443/a?b#c"),
        ("https://token@host/a", "https://host/a"),
        ("https://host/a@b", "https://host/a@b"),
        ("file:///a@b/c", "file:///a@b/c"),
    ],
)
def test_credentials_are_taken_out_of_urls(url: str, clean: str) -> None:
    assert without_credentials(url) == clean


def test_credentials_are_taken_out_of_text() -> None:
    text = "Failed to fetch: `https://me:secret@host/simple/` and http://t0ken@other/x, not a@b"
    assert redacted(text) == "Failed to fetch: `https://****@host/simple/` and http://****@other/x, not a@b"
