"""Homes of users, and of those that have none: containers run as numbers without an account."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from envmedic import xdg

NOBODYS = 54321
CODE = f"""
import os
from pathlib import Path
from envmedic import xdg
from envmedic.installers.index import configuration
from envmedic.installers.wheels import download_cache
from envmedic.playbook.schema import loader
from envmedic.playbook.schema.cache import user_root
del os.environ["HOME"]
os.setuid({NOBODYS})
assert xdg.home() == xdg.home({{}}) == Path("/nonexistent"), xdg.home()
assert xdg.expanded("~/x") == Path("/nonexistent/x")
assert download_cache.root() == Path("/nonexistent/.cache/envmedic/wheels")
assert user_root() == Path("/nonexistent/.cache/envmedic")
assert loader.user_directory() == Path("/nonexistent/.config/envmedic/playbooks")
configuration.read(None, {{"UV_NO_CONFIG": "1", "PIP_CONFIG_FILE": os.devnull}})
"""


def test_home_is_what_the_variable_says_else_the_account() -> None:
    assert xdg.home({"HOME": "/home/me"}) == Path("/home/me")
    assert xdg.home({"HOME": "elsewhere"}) == Path("/nonexistent")


def test_cache_and_settings_are_where_the_variables_say_else_at_home() -> None:
    assert xdg.cache({"HOME": "/home/me", "XDG_CACHE_HOME": "/fast"}) == Path("/fast")
    assert xdg.config({"HOME": "/home/me", "XDG_CONFIG_HOME": ""}) == Path("/home/me/.config")
    assert xdg.cache({"HOME": "/home/me"}) == Path("/home/me/.cache")


def test_a_path_of_somebody_who_is_not_there_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert xdg.expanded("~") == Path("/home/me")
    assert xdg.expanded("~/a b") == Path("/home/me/a b")
    assert xdg.expanded("~no-such-user/x") == Path("~no-such-user/x")
    assert xdg.expanded("/a/~") == Path("/a/~")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become a user without an account")
def test_a_user_without_home_and_account_has_places_that_are_not_there() -> None:
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "PIP_"))}
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=False, env=variables)
    assert done.returncode == 0, done.stderr
