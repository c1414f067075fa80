"""Histories are replayed as conda replays them, and continued so that conda holds to what is installed."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from envmedic.conda_meta import history, packages, records
from envmedic.installers.conda.configuration.spec_matching import matches
from envmedic.model.conda import CondaPackage
from tests.conda_meta.conftest import Conda
from tests.conda_meta.support import record, write

_WHEN = datetime(2026, 1, 2, 3, 4, 5)  # noqa: DTZ001  # conda writes local time without a zone
_NAMES = ("alpha", "beta", "gamma")
_INSTALLED = [record(name, "2.0") for name in _NAMES]
_SPECS = st.lists(
    st.builds(
        lambda name, rest: name + rest,
        st.sampled_from(["alpha", "beta", "gamma", "absent", "Alpha", "conda-forge::beta"]),
        st.sampled_from(["", "=1.0", "==2.0", " >=2", ">=1,<3", "[version='>=1,<3']", "=2.0=0", "@"]),
    ),
    max_size=3,
)
_LINES = st.one_of(
    st.builds(
        lambda action, specs: f"# {action} specs: {specs}",
        st.sampled_from(["update", "install", "create", "remove", "uninstall", "neutered", "other"]),
        _SPECS,
    ),
    st.builds(lambda specs: f"# install specs: {','.join(specs)}", _SPECS),
    st.sampled_from(["# cmd: conda install x", "# conda version: 24.7.1", "# a remark", "", "# update specs:"]),
)
_DISTS = [f"conda-forge/linux-64::{name}-{version}-0" for name in _NAMES for version in ("1.0", "2.0")]
_CHANGES = st.lists(
    st.builds(lambda sign, dist: sign + dist, st.sampled_from("+-"), st.sampled_from(_DISTS)),
    unique_by=lambda line: str(line[1:]),
)
_REVISIONS = st.builds(
    lambda command, changes, lines: "\n".join(
        ["==> 2024-01-01 00:00:00 <==", *(["# cmd: /opt/conda/bin/conda install"] if command else []), *changes, *lines]
    ),
    st.booleans(),
    _CHANGES,
    st.lists(_LINES, max_size=4),
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(revisions=st.lists(_REVISIONS, max_size=5), before=st.sampled_from(["", "# cmd: lost\n+x\n"]))
def test_specs_and_state_are_condas(conda: Conda, tmp_path: Path, revisions: list[str], before: str) -> None:
    text = before + "\n".join(revisions)
    write(tmp_path, _INSTALLED, text)
    read = history.read(text)
    ours = {name: conda.text(spec) for name, spec in history.specs_in_force(read, _NAMES).items()}
    stops = any(item.unreadable for item in read)
    assert (None if stops else ours) == conda.specs(tmp_path)
    assert history.state(read) == conda.state(tmp_path)


def test_a_first_revision_may_list_packages_without_signs(conda: Conda, tmp_path: Path) -> None:
    text = "==> 2014-01-01 00:00:00 <==\nalpha-1.0-0\nbeta-1.0-0\n==> 2015-01-01 00:00:00 <==\n-alpha-1.0-0\n+alpha-2.0-0\n"
    write(tmp_path, _INSTALLED, text)
    assert history.state(history.read(text)) == {"alpha-2.0-0", "beta-1.0-0"} == conda.state(tmp_path)


def test_specs_that_conda_itself_stops_at_are_named(conda: Conda, tmp_path: Path) -> None:
    text = "==> 2024-01-01 00:00:00 <==\n# cmd: conda install x\n# update specs: ['alpha', 'bro\n# remove specs: ['beta']\n"
    write(tmp_path, _INSTALLED, text)
    (revision,) = history.read(text)
    assert revision.unreadable == ("# update specs: ['alpha', 'bro",)
    assert revision.remove == ("beta",)
    assert conda.specs(tmp_path) is None


def _installed(*items: dict[str, Any]) -> tuple[CondaPackage, ...]:
    decoded = {f"conda-meta/{item['name']}.json": records.decode(_json(item)) for item in items}
    return packages.packages(records.Records(packages=decoded))


def _composed(text: str, now: tuple[CondaPackage, ...], **request: Any) -> str:
    return history.compose(text, now, history.RevisionRequest(when=_WHEN, **request), matches)


def _json(item: dict[str, Any]) -> bytes:
    return json.dumps(item).encode()


_MADE = """==> 2025-11-20 17:25:17 <==
# cmd: conda create -n x alpha=1.0 beta
# conda version: 24.7.1
+conda-forge/linux-64::alpha-1.0-0
+conda-forge/linux-64::beta-1.0-0
+conda-forge/linux-64::gamma-2.0-0
# update specs: ['alpha=1.0', 'beta', 'gamma==2.0=0']
"""


def test_a_revision_is_what_conda_reads(conda: Conda, tmp_path: Path) -> None:
    now = [record("alpha", "2.0"), record("gamma", "2.0")]
    added = _composed(
        _MADE,
        _installed(*now),
        command="envmedic apply",
        update=["alpha=2"],
        remove=["beta"],
    )
    assert added.splitlines() == [
        "==> 2026-01-02 03:04:05 <==",
        "# cmd: envmedic apply",
        "# conda version: 24.7.1",
        "-conda-forge/linux-64::alpha-1.0-0",
        "-conda-forge/linux-64::beta-1.0-0",
        "+conda-forge/linux-64::alpha-2.0-0",
        "# remove specs: ['beta']",
        "# update specs: ['alpha=2']",
    ]
    write(tmp_path, now, _MADE + added)
    assert conda.specs(tmp_path) == {"alpha": "alpha=2", "gamma": "gamma==2.0=0"}
    assert conda.state(tmp_path) == {conda.dist_string(_plain(item)) for item in now}


def _plain(item: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in item.items() if key not in {"files", "paths_data", "requested_spec"}}


def test_specs_that_no_longer_hold_are_overridden_though_nobody_named_them(conda: Conda, tmp_path: Path) -> None:
    cloned = _MADE.replace("['alpha=1.0', 'beta', 'gamma==2.0=0']", "['alpha==1.0=0', 'beta==1.0=0', 'gamma==2.0=0']")
    now = [record("alpha", "2.0"), record("beta", "1.5", "7"), record("gamma", "2.0")]
    added = _composed(cloned, _installed(*now), command="envmedic apply", update=["alpha=2"])
    write(tmp_path, now, cloned + added)
    assert conda.specs(tmp_path) == {"alpha": "alpha=2", "beta": "beta=1.5", "gamma": "gamma==2.0=0"}


def test_specs_of_packages_that_are_gone_are_taken_back(conda: Conda, tmp_path: Path) -> None:
    now = [record("alpha", "1.0"), record("gamma", "2.0")]
    added = _composed(_MADE, _installed(*now), command="x")
    assert "# remove specs: ['beta']" in added
    write(tmp_path, [*now, record("beta", "3.0")], _MADE + added)
    assert conda.specs(tmp_path) == {"alpha": "alpha=1.0", "gamma": "gamma==2.0=0"}


def test_where_nothing_was_asked_for_all_packages_stay_protected(conda: Conda, tmp_path: Path) -> None:
    now = [record("alpha", "2.0"), record("beta", "1.0"), record("gamma", "2.0")]
    added = _composed("", _installed(*now), command="x", update=["alpha=2"])
    write(tmp_path, now, added)
    assert conda.specs(tmp_path) == {"alpha": "alpha=2", "beta": "beta", "gamma": "gamma"}
    assert conda.state(tmp_path) == {conda.dist_string(_plain(item)) for item in now}


def test_what_the_records_say_was_requested_counts_where_there_is_no_history_and_the_rest_stays(
    conda: Conda, tmp_path: Path
) -> None:
    asked = [record("alpha", "2.0", requested_specs=["alpha >=1"]), record("beta", "1.0", requested_specs=["beta <1"])]
    now = [*asked, record("gamma"), record("delta")]
    added = _composed("", _installed(*now), command="x", update=["gamma"])
    write(tmp_path, now, added)
    specs = {"alpha": "alpha[version='>=1']", "beta": "beta=1.0", "gamma": "gamma", "delta": "delta"}
    assert conda.specs(tmp_path) == specs


def test_packages_put_in_place_again_are_protected_as_well(conda: Conda, tmp_path: Path) -> None:
    now = [record("alpha", "2.0", requested_specs=["alpha 2.0"]), record("beta", "1.0")]
    write(tmp_path, now, _composed("", _installed(*now), command="x"))
    assert conda.specs(tmp_path) == {"alpha": "alpha==2.0", "beta": "beta"}


def test_what_only_removed_packages_needed_is_held_where_it_stays(conda: Conda, tmp_path: Path) -> None:
    before = [
        record("alpha", "1.0", depends=["delta >=1", "epsilon"]), record("beta"), record("gamma", "2.0"),
        record("delta", depends=["zeta"]), record("epsilon"), record("zeta"), record("eta"),
    ]  # fmt: skip
    now = [item for item in before if item["name"] not in {"alpha", "epsilon"}]
    added = _composed(_MADE, _installed(*now), command="x", remove=["alpha"], before=_installed(*before))
    write(tmp_path, now, _MADE + added)
    held = {"beta": "beta", "gamma": "gamma==2.0=0", "delta": "delta", "zeta": "zeta"}
    assert conda.specs(tmp_path) == held, "eta was nobody's before, and stays so"


def test_nothing_is_written_when_nothing_changed() -> None:
    now = [record("alpha", "1.0"), record("beta", "1.0"), record("gamma", "2.0")]
    assert not _composed(_MADE, _installed(*now), command="x")
    assert not _composed(_MADE, _installed(*now), command="x", update=["alpha=1.0"])


def test_a_package_of_the_same_build_from_a_channel_spelt_otherwise_did_not_change() -> None:
    now = [record(name, version, channel="pkgs/main", url=f"file:///srv/mirror/linux-64/{name}-{version}-0.conda")
           for name, version in (("alpha", "1.0"), ("beta", "1.0"), ("gamma", "2.0"))]  # fmt: skip
    assert not _composed(_MADE, _installed(*now), command="x")


def test_a_history_without_a_last_line_end_is_continued_on_a_new_line() -> None:
    added = _composed(_MADE.rstrip("\n"), _installed(record("alpha", "2.0")), command="a\nb")
    assert added.startswith("\n==> ")
    assert "# cmd: a b\n" in added


@pytest.mark.parametrize(
    ("channel", "url"),
    [
        ("https://conda.anaconda.org/conda-forge/linux-64", "https://conda.anaconda.org/conda-forge/linux-64/a-1-0.conda"),
        ("https://repo.anaconda.com/pkgs/main/linux-64", "https://repo.anaconda.com/pkgs/main/linux-64/a-1-0.conda"),
        ("file:///srv/channel/linux-64", "file:///srv/channel/linux-64/a-1-0.conda"),
        ("https://example.org/get/some/linux-64", "https://example.org/get/some/linux-64/a-1-0.conda"),
    ],
)  # fmt: skip
def test_packages_are_named_as_conda_names_them(conda: Conda, channel: str, url: str) -> None:
    item = record("a", "1", "0", channel=channel, url=url)
    assert packages.dist_string(_installed(item)[0]) == conda.dist_string(_plain(item))


def test_credentials_stay_out_of_the_history() -> None:
    url = "https://user:secret@example.org/t/tk-123/some/linux-64/a-1-0.conda"
    item = record("a", "1", "0", channel="https://user:secret@example.org/t/tk-123/some/linux-64", url=url)
    (package,) = _installed(item)
    assert package.url == "https://example.org/some/linux-64/a-1-0.conda"
    assert packages.dist_string(package) == "https://example.org/some/linux-64::a-1-0"
