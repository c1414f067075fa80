"""From facts to a lock: what each entry is, and what cannot be one."""

from __future__ import annotations

import msgspec
import pytest

from envmedic.locks.collect import collect, platform_of, without_secrets
from envmedic.model.conda import CondaEnvironment, CondaPackage
from envmedic.model.facts import Distribution, Environment, Host, Interpreter, Origin
from envmedic.model.lock import Lock, WheelFile

DIGEST = "d" * 64


def distribution(name: str, version: str = "1.0", **more: object) -> Distribution:
    plain: dict[str, object] = {
        "name": name, "version": version, "metadata_path": f"{name}.dist-info", "site": "site", "owner": "pip",
        "origin": Origin(kind="index"),
    }  # fmt: skip
    return Distribution(**{**plain, **more})  # type: ignore[arg-type]  # fields of the test


def locked(*installed: Distribution, known: tuple[WheelFile, ...] = (), **more: object) -> Lock:
    environment = Environment(
        prefix="/srv/envs/train", real_prefix="/srv/envs/train", kind="venv",
        interpreter=Interpreter(path="/srv/envs/train/bin/python", starts=True, version="3.11.7"),
        distributions=installed, **more,  # type: ignore[arg-type]  # fields of the test
    )  # fmt: skip
    files = {(item.name, item.version): item for item in known}
    return collect(environment, Host(), files, envmedic="0.1.0", created="2026-01-02T03:04:05Z")


def wheel_file(name: str, **more: object) -> WheelFile:
    plain: dict[str, object] = {
        "name": name, "version": "1.0", "kind": "wheel", "filename": f"{name}-1.0-py3-none-any.whl",
        "sha256": DIGEST, "source": "index", "url": f"https://files.example/{name}.whl",
    }  # fmt: skip
    return WheelFile(**{**plain, **more})  # type: ignore[arg-type]  # fields of the test


def test_what_conda_brings_is_locked_once() -> None:
    numpy = CondaPackage(name="numpy", version="1.26", build="0", distributions=("numpy",), md5="m", url="https://c/n")
    found = locked(
        distribution("numpy", "1.26", owner="conda", origin=Origin(kind="conda")),
        distribution("einops"),
        conda=CondaEnvironment(packages=(numpy,)),
    )
    assert [(item.manager, item.name) for item in found.packages] == [("conda", "numpy"), ("pip", "einops")]


def test_what_pip_put_over_conda_is_locked_for_both() -> None:
    numpy = CondaPackage(name="numpy", version="1.26", build="0", distributions=("numpy",))
    found = locked(distribution("numpy", "2.0", owner="pip"), conda=CondaEnvironment(packages=(numpy,)))
    assert [(item.manager, item.version) for item in found.packages] == [("conda", "1.26"), ("pip", "2.0")]


def test_several_copies_are_told() -> None:
    found = locked(distribution("torch", "2.4"), distribution("torch", "2.5"), duplicates=("torch",))
    assert len(found.packages) == 1
    assert [(item.name, "2.4, 2.5" in item.reason) for item in found.incomplete] == [("torch", True)]


def test_what_comes_from_outside_is_told_where_it_is_needed() -> None:
    found = locked(
        distribution("app", requires=("Needed_Thing>=1",)),
        distribution("needed-thing", outside_prefix=True),
        distribution("other", outside_prefix=True),
    )
    assert [item.name for item in found.incomplete] == ["needed-thing"]
    assert [item.name for item in found.packages] == ["app"]


def test_a_file_with_another_hash_is_not_the_one_that_was_installed() -> None:
    origin = Origin(kind="archive", url="https://x/app-1.0-py3-none-any.whl", sha256="e" * 64)
    found = locked(distribution("app", origin=origin), known=(wheel_file("app"),))
    assert found.packages[0].sha256 == "e" * 64
    assert found.packages[0].url == "https://x/app-1.0-py3-none-any.whl"


def test_no_path_of_this_machine_is_in_an_entry() -> None:
    kinds = {
        "mine": Origin(kind="editable", url="file:///home/me/mine"),
        "dir": Origin(kind="directory", url="file:///home/me/dir"),
        "repo": Origin(kind="vcs", url="file:///home/me/repo", revision="abc"),
        "local": Origin(kind="archive", url="file:///home/me/local-1.0-py3-none-any.whl", sha256=DIGEST),
    }
    found = locked(*(distribution(name, origin=origin) for name, origin in kinds.items()))
    assert [item.path for item in found.packages if item.path] == ["/home/me/dir", "/home/me/mine"]
    entries = [
        msgspec.structs.replace(item, path=None) for item in found.packages
    ]  # a written lock has the way from itself
    assert "/home/me" not in str(entries)
    assert {item.name: item.kind for item in found.packages} == {
        "dir": "directory", "local": "wheel", "mine": "editable", "repo": "vcs",
    }  # fmt: skip
    assert found.builds


@pytest.mark.parametrize(
    ("url", "clean"),
    [
        ("https://me:pw@host/a/b.whl?token=1#sha256=2", "https://host/a/b.whl"),
        ("https://***@host/a", "https://host/a"),
        ("git+ssh://git@host/a", "git+ssh://host/a"),
        ("https://host/a", "https://host/a"),
    ],
)
def test_nothing_of_a_url_that_can_hold_a_login_stays(url: str, clean: str) -> None:
    assert without_secrets(url) == clean


def test_virtual_packages_are_the_highest_that_are_asked_for() -> None:
    packages = (
        CondaPackage(name="a", version="1", build="0", depends=("__glibc >=2.17,<3.0.a0", "python")),
        CondaPackage(name="b", version="1", build="0", depends=("__glibc >=2.28",), constrains=("__cuda >=12",)),
    )
    found = locked(conda=CondaEnvironment(packages=packages))
    assert found.virtual_packages == {"__cuda": "12", "__glibc": "2.28"}


def test_channels_are_listed_by_how_much_came_from_them() -> None:
    packages = [CondaPackage(name=f"p{n}", version="1", build="0", channel="b" if n else "a") for n in range(3)]
    found = locked(conda=CondaEnvironment(packages=(*packages,), damaged=("conda-meta/x-1-0.json",)))
    assert found.channels == ("b", "a")
    assert [item.name for item in found.incomplete] == ["x-1-0"]


def test_platforms_have_condas_names() -> None:
    assert platform_of(Host(machine="aarch64")) == "linux-aarch64"
    assert platform_of(Host(system="darwin", machine="arm64")) == "osx-arm64"
    assert platform_of(Host(machine="riscv64")) == "linux-riscv64"
