"""What uv is asked and what is made of its answer, on real indexes."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import msgspec
import pytest

from envmedic.errors import InputError, InstallerError, NetworkError, NoSolution
from envmedic.installers.uv import UvInstaller
from envmedic.model.facts import Interpreter
from envmedic.model.plan import Artifact
from envmedic.model.ports import Resolution, ResolveRequest
from envmedic.planner.user_pins import blamed, constraints
from envmedic.probe.packages import user_pins
from tests.installers.observed import environment
from tests.support.index import IndexServer, write_index
from tests.support.venvs import site_packages
from tests.support.wheels import Wheel, make_wheel


def resolve(prefix: Path, *pins: str, installed: tuple[Wheel, ...] = (), **request: object) -> Resolution:
    """Resolve for the environment at `prefix`."""
    return UvInstaller().resolve(
        ResolveRequest(pins=pins, **request),  # type: ignore[arg-type]
        environment(prefix, installed),
        lambda _: None,
    )


def names(resolution: Resolution) -> list[str]:
    """``name version`` of every artifact."""
    return sorted(f"{item.name} {item.version}" for item in resolution.artifacts)


def only(resolution: Resolution) -> Artifact:
    """The one artifact."""
    (artifact,) = resolution.artifacts
    return artifact


@pytest.fixture
def family(tmp_path: Path) -> dict[str, Wheel]:
    """torch, two torchvisions, and what they need."""
    folder = tmp_path / "wheels"
    wheels = [
        make_wheel(folder, "torch", "2.5.1"),
        make_wheel(folder, "torchvision", "0.19.1", requires=["torch==2.4.1"]),
        make_wheel(folder, "torchvision", "0.20.1", requires=["torch==2.5.1", "numpy", 'scipy; extra == "scipy"']),
        make_wheel(folder, "numpy", "1.26.4"),
        make_wheel(folder, "numpy", "2.1.0"),
    ]
    return {wheel.requirement: wheel for wheel in wheels}


@pytest.fixture
def index(tmp_path: Path, family: dict[str, Wheel], monkeypatch: pytest.MonkeyPatch) -> str:
    """The family's index, configured for pip."""
    url = write_index(tmp_path / "family", list(family.values()))
    monkeypatch.setenv("PIP_INDEX_URL", url)
    return url


@pytest.mark.usefixtures("index")
def test_a_pin_becomes_the_exact_wheel(venv: Path, family: dict[str, Wheel], quick: Path) -> None:
    installed = (family["torch==2.5.1"], family["numpy==1.26.4"])
    wheel = family["torchvision==0.20.1"]
    artifact = only(resolve(venv, "torchvision==0.20.1", installed=installed))
    assert (artifact.name, artifact.version, artifact.filename) == ("torchvision", "0.20.1", wheel.path.name)
    assert (artifact.sha256, artifact.size_bytes) == (wheel.sha256, wheel.size)
    assert artifact.url.startswith("file://")
    folder = quick / ".cache/envmedic/wheels" / wheel.sha256[:2] / wheel.sha256
    assert Path(artifact.local_path) == folder / wheel.path.name
    assert artifact.requires == ("torch==2.5.1", "numpy", 'scipy; extra == "scipy"')


@pytest.mark.usefixtures("index")
def test_uv_asks_the_environment_s_python_without_the_secrets_of_the_shell(
    venv: Path, family: dict[str, Wheel], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = tmp_path / "told"
    hook = f"import os; open({str(told)!r}, 'a').write(' '.join(os.environ) + '\\n')\n"
    (site_packages(venv) / "hook.pth").write_text(hook)
    monkeypatch.setenv("MY_NOTES", "x")
    monkeypatch.setenv("LC_TIME", "C")
    resolve(venv, "torchvision==0.20.1", installed=(family["torch==2.5.1"], family["numpy==1.26.4"]))
    asked = [line.split() for line in told.read_text().splitlines()]
    assert asked
    assert all("LC_TIME" in names for names in asked)
    assert not any({"MY_NOTES", "PIP_INDEX_URL"} & {*names} for names in asked)


@pytest.mark.usefixtures("index")
def test_a_missing_dependency_comes_along_and_installed_ones_stay(venv: Path, family: dict[str, Wheel]) -> None:
    assert names(resolve(venv, "torchvision==0.20.1", installed=(family["torch==2.5.1"],))) == [
        "numpy 2.1.0",
        "torchvision 0.20.1",
    ]


@pytest.mark.usefixtures("index")
def test_dependencies_of_an_installed_distribution_are_not_added(venv: Path, tmp_path: Path) -> None:
    installed = make_wheel(tmp_path / "wheels", "torch", "2.5.1", requires=["not-there"])
    numpy = make_wheel(tmp_path / "wheels", "numpy", "1.26.4")
    assert names(resolve(venv, "torchvision==0.20.1", installed=(installed, numpy))) == ["torchvision 0.20.1"]


def test_an_older_dependency_is_taken_when_the_newest_does_not_fit(
    venv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheels = [
        make_wheel(tmp_path / "w", "app", "1.0", requires=["helper"]),
        make_wheel(tmp_path / "w", "helper", "1.0", requires=["numpy"]),
        make_wheel(tmp_path / "w", "helper", "2.0", requires=["numpy>=2"]),
    ]
    monkeypatch.setenv("PIP_INDEX_URL", write_index(tmp_path / "i", wheels))
    installed = make_wheel(tmp_path / "w", "numpy", "1.26.4")
    assert names(resolve(venv, "app==1.0", installed=(installed,))) == ["app 1.0", "helper 1.0"]


@pytest.mark.usefixtures("index")
def test_a_pin_that_does_not_fit_what_stays_is_refused_with_both_named(venv: Path, family: dict[str, Wheel]) -> None:
    with pytest.raises(NoSolution) as raised:
        resolve(venv, "torchvision==0.19.1", installed=(family["torch==2.5.1"],))
    assert raised.value.cause == "torchvision 0.19.1 needs torch==2.4.1, but 2.5.1 is installed"
    assert raised.value.hint


def test_replaceable_distributions_follow_the_pin_and_unchanged_ones_are_left_out(
    venv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = make_wheel(tmp_path / "w", "torch", "2.6.0", requires=["nvidia-a==2", "nvidia-b==1"])
    parts = [make_wheel(tmp_path / "w", f"nvidia-{part}", version) for part in "ab" for version in "12"]
    monkeypatch.setenv("PIP_INDEX_URL", write_index(tmp_path / "i", [torch, *parts]))
    installed = tuple(part for part in parts if part.version == "1")
    with pytest.raises(NoSolution, match="fits what is installed"):
        resolve(venv, "torch==2.6.0", installed=installed)
    assert names(resolve(venv, "torch==2.6.0", installed=installed, replaceable=("nvidia-*",))) == [
        "nvidia-a 2",
        "torch 2.6.0",
    ]


def test_replaceable_distribution_stays_where_it_fits_the_pin(
    venv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another one may not know its newest release: cached-path has ``filelock<4``, torch any filelock."""
    torch = make_wheel(tmp_path / "w", "torch", "2.6.0", requires=["filelock", "sympy>=2"])
    parts = [make_wheel(tmp_path / "w", name, version) for name in ("filelock", "sympy") for version in "12"]
    monkeypatch.setenv("PIP_INDEX_URL", write_index(tmp_path / "i", [torch, *parts]))
    installed = tuple(part for part in parts if part.version == "1")
    found = resolve(venv, "torch==2.6.0", installed=installed, replaceable=("filelock", "sympy"))
    assert names(found) == ["sympy 2", "torch 2.6.0"]


@pytest.mark.usefixtures("index")
def test_a_pin_that_is_installed_in_that_version_is_still_resolved(venv: Path, family: dict[str, Wheel]) -> None:
    installed = tuple(family[pin] for pin in ("torch==2.5.1", "torchvision==0.20.1", "numpy==2.1.0"))
    assert names(resolve(venv, "torchvision==0.20.1", installed=installed)) == ["torchvision 0.20.1"]


@pytest.mark.usefixtures("index")
@pytest.mark.parametrize("kind", ["simple", "flat", "flat path", "http"])
def test_the_variant_index_gives_the_labelled_build(
    kind: str, venv: Path, tmp_path: Path, family: dict[str, Wheel], index_server: IndexServer
) -> None:
    wheel = make_wheel(tmp_path / "cu124", "torchvision", "0.20.1+cu124", requires=["torch==2.5.1"])
    write_index(index_server.root / "whl", [wheel])
    write_index(tmp_path / "whl" / "cu124", [wheel])
    template = {
        "simple": (tmp_path / "whl").as_uri() + "/{variant}/simple",
        "flat": tmp_path.as_uri() + "/{variant}",
        "flat path": f"{tmp_path}/{{variant}}",
        "http": f"{index_server.host}/whl/simple",
    }[kind]
    artifact = only(
        resolve(
            venv,
            "torchvision==0.20.1",
            installed=(family["torch==2.5.1"],),
            variant="cu124",
            needs_variant_index=True,
            torch_index=template,
        )
    )
    assert (artifact.version, artifact.filename) == ("0.20.1+cu124", "torchvision-0.20.1+cu124-py3-none-any.whl")


@pytest.mark.usefixtures("index")
def test_the_unlabelled_build_does_not_stand_in_for_the_variant(
    venv: Path, family: dict[str, Wheel], tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(NoSolution, match="No wheel for"):
        resolve(
            venv,
            "torchvision==0.20.1",
            installed=(family["torch==2.5.1"],),
            variant="cu118",
            needs_variant_index=True,
            torch_index=(tmp_path / "empty").as_uri(),
        )


@pytest.mark.usefixtures("index")
def test_the_variant_index_is_left_alone_when_it_is_not_needed(
    venv: Path, family: dict[str, Wheel], index_server: IndexServer
) -> None:
    installed = (family["torch==2.5.1"], family["numpy==2.1.0"])
    resolution = resolve(
        venv, "torchvision==0.20.1", installed=installed, variant="cu124", torch_index=f"{index_server.url}/{{variant}}"
    )
    assert names(resolution) == ["torchvision 0.20.1"]
    assert index_server.seen == []


@pytest.mark.usefixtures("index")
def test_a_variant_index_that_cannot_be_reached_leads_to_a_mirror(venv: Path, family: dict[str, Wheel]) -> None:
    with pytest.raises(NetworkError) as raised:
        resolve(
            venv,
            "torchvision==0.20.1",
            installed=(family["torch==2.5.1"],),
            variant="cu124",
            needs_variant_index=True,
            torch_index="http://127.0.0.1:9/whl/{variant}",
        )
    assert "--torch-index" in str(raised.value.hint)


@pytest.mark.usefixtures("index")
def test_the_variant_index_comes_from_the_variable_too(
    venv: Path, tmp_path: Path, family: dict[str, Wheel], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_wheel(tmp_path / "mirror" / "cu124", "torchvision", "0.20.1+cu124")
    monkeypatch.setenv("ENVMEDIC_TORCH_INDEX", (tmp_path / "mirror").as_uri() + "/{variant}")
    installed = (family["torch==2.5.1"],)
    resolution = resolve(venv, "torchvision==0.20.1", installed=installed, variant="cu124", needs_variant_index=True)
    assert names(resolution) == ["torchvision 0.20.1+cu124"]


@pytest.mark.usefixtures("index")
def test_another_variant_in_a_directory_is_passed_over(venv: Path, tmp_path: Path, family: dict[str, Wheel]) -> None:
    for label in ("cpu", "cu118"):
        make_wheel(tmp_path / "mixed", "torchvision", f"0.20.1+{label}")
    installed = (family["torch==2.5.1"], family["numpy==2.1.0"])
    links = (str(tmp_path / "mixed"),)
    assert names(resolve(venv, "torchvision==0.20.1", installed=installed, variant="cu124", find_links=links)) == [
        "torchvision 0.20.1"
    ]
    assert names(resolve(venv, "torchvision==0.20.1", installed=installed, variant="cpu", find_links=links)) == [
        "torchvision 0.20.1+cpu"
    ]


def test_a_directory_of_wheels_is_enough_offline(venv: Path, family: dict[str, Wheel], tmp_path: Path) -> None:
    links = (str(tmp_path / "wheels"),)
    resolution = resolve(
        venv, "torchvision==0.20.1", installed=(family["torch==2.5.1"],), find_links=links, offline=True
    )
    assert names(resolution) == ["numpy 2.1.0", "torchvision 0.20.1"]


def test_offline_no_server_is_asked_for_what_uv_remembers(
    venv: Path, family: dict[str, Wheel], index_server: IndexServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_index(index_server.root, list(family.values()))
    monkeypatch.setenv("PIP_INDEX_URL", index_server.url)
    installed = (family["torch==2.5.1"], family["numpy==1.26.4"])
    assert resolve(venv, "torchvision==0.20.1", installed=installed).artifacts
    index_server.seen.clear()
    again = resolve(venv, "torchvision==0.20.1", installed=installed, offline=True)
    assert index_server.seen == []
    assert (names(again), only(again).requires) == (["torchvision 0.20.1"], ())
    assert "is not known without the network" in str(again.notes)


@pytest.mark.usefixtures("index")
def test_fetched_wheels_are_found_again_offline(
    venv: Path, family: dict[str, Wheel], monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = (family["torch==2.5.1"],)
    installer = UvInstaller()
    artifacts = resolve(venv, "torchvision==0.20.1", installed=installed).artifacts
    installer.fetch(artifacts, offline=False, emit=lambda _: None)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    again = resolve(venv, "torchvision==0.20.1", installed=installed, offline=True).artifacts
    assert [item.sha256 for item in again] == [item.sha256 for item in artifacts]
    installer.fetch(again, offline=True, emit=lambda _: None)


def test_a_find_links_directory_that_does_not_exist_is_named(venv: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no-such-directory does not exist"):
        resolve(venv, "torch==2.5.1", find_links=(str(tmp_path / "no-such-directory"),))


def test_the_best_wheel_for_this_python_and_machine_is_chosen(
    venv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys
    import sysconfig

    python = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    machine = sysconfig.get_platform().partition("-")[2].replace("-", "_")
    tags = (f"{python}-{python}-manylinux2014_{machine}", "py3-none-any", f"{python}-abi3-manylinux2014_{machine}")
    wheels = [make_wheel(tmp_path / "w", "native", "1.0", tags=(tag,)) for tag in tags]
    monkeypatch.setenv("PIP_INDEX_URL", write_index(tmp_path / "i", wheels))
    assert only(resolve(venv, "native==1.0")).filename == wheels[0].path.name


@pytest.mark.usefixtures("index")
def test_wheels_are_resolved_while_only_the_clone_has_a_python(venv: Path, tmp_path: Path) -> None:
    seen = environment(venv)
    interpreter = msgspec.structs.replace(
        seen.interpreter, path=str(tmp_path / "gone" / "bin" / "python"), base_prefix=sys.base_prefix
    )
    observed = msgspec.structs.replace(seen, interpreter=interpreter)
    resolution = UvInstaller().resolve(ResolveRequest(pins=("numpy==2.1.0",)), observed, lambda _: None)
    assert names(resolution) == ["numpy 2.1.0"]


def test_an_interpreter_that_does_not_start_is_named_before_uv_runs(venv: Path) -> None:
    broken = environment(venv)
    interpreter = Interpreter(path="/gone/python", starts=False, error="No such file or directory")
    observed = type(broken)(prefix=broken.prefix, real_prefix=broken.real_prefix, kind="uv", interpreter=interpreter)
    with pytest.raises(InstallerError, match="/gone/python does not start"):
        UvInstaller().resolve(ResolveRequest(pins=("torch==2.5.1",)), observed, lambda _: None)


@pytest.mark.usefixtures("index")
def test_a_prefix_with_spaces_and_letters_beyond_ascii(tmp_path: Path, family: dict[str, Wheel]) -> None:
    from tests.support.venvs import make_venv

    prefix = make_venv(tmp_path / "mein Büro é")
    installed = (family["torch==2.5.1"], family["numpy==2.1.0"])
    assert names(resolve(prefix, "torchvision==0.20.1", installed=installed)) == ["torchvision 0.20.1"]


def test_without_uv_the_error_says_how_to_get_it(venv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "uv", None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InstallerError) as raised:
        resolve(venv, "torch==2.5.1")
    assert raised.value.hint == "Install them: pip install 'envmedic[repair]', or: uv tool install 'envmedic[repair]'"


def test_uv_on_the_path_serves_when_the_package_is_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from tests.support.venvs import uv

    (tmp_path / "uv").symlink_to(uv())
    monkeypatch.setitem(sys.modules, "uv", None)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert UvInstaller().uv == str(tmp_path / "uv")


@pytest.mark.parametrize("ranges", [True, False])
def test_requirements_are_read_without_the_metadata_file_where_ranges_work(
    *, ranges: bool, venv: Path, tmp_path: Path, index_server: IndexServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    filler = {"big.bin": bytes(range(256)) * 4096}
    wheel = make_wheel(tmp_path / "w", "app", "1.0", files=filler, requires=['numpy; python_version < "3"'])
    write_index(index_server.root, [wheel], metadata=False)
    index_server.ranges = ranges
    monkeypatch.setenv("PIP_INDEX_URL", index_server.url)
    resolution = resolve(venv, "app==1.0")
    artifact = only(resolution)
    assert bool(resolution.notes) is not ranges
    assert artifact.requires == (('numpy; python_version < "3"',) if ranges else ())
    assert artifact.size_bytes == wheel.size


def test_a_wheel_here_without_a_hash_in_uvs_answer_is_hashed(tmp_path: Path) -> None:
    from packaging.tags import sys_tags

    from envmedic.installers.resolution.resolve import candidates

    wheel = make_wheel(tmp_path, "torch", "2.5.1")
    package = {"name": "torch", "version": "2.5.1", "wheels": [{"path": str(wheel.path), "hashes": {}}]}
    ranks = {tag: rank for rank, tag in enumerate(sys_tags())}
    (found,) = candidates({"packages": [package]}, ranks)
    assert found.sha256 == hashlib.sha256(wheel.path.read_bytes()).hexdigest()
    package["wheels"] = [{"url": "http://127.0.0.1:9/torch-2.5.1-py3-none-any.whl", "hashes": {}}]
    with pytest.raises(InstallerError, match="gives no SHA-256 for torch"):
        candidates({"packages": [package]}, ranks)


def test_a_limit_that_leaves_the_resolver_no_way_is_named(
    tmp_path: Path, venv: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheels = [make_wheel(tmp_path, "numpy", "1.26.4"), make_wheel(tmp_path, "numpy", "2.1.0")]
    monkeypatch.setenv("PIP_INDEX_URL", write_index(tmp_path / "index", wheels))
    (venv.parent / "requirements.txt").write_text("scipy\nnumpy>=2,<3\n", encoding="utf-8")
    pins = user_pins.observe(venv)
    with pytest.raises(NoSolution) as raised:
        resolve(venv, "numpy<2", constraints=constraints(pins))
    told = blamed(pins, raised.value)
    assert f"{venv.parent / 'requirements.txt'}:2 says numpy<3,>=2" in (told.cause or "")
    assert "scipy" not in (told.cause or "")


@pytest.fixture
def early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """app, whose newer releases need another lib, but for a pre-release."""
    folder = tmp_path / "w"
    wheels = [
        make_wheel(folder, "app", "1.0", requires=["lib<1"]),
        make_wheel(folder, "app", "2.0rc1", requires=["lib>=1"]),
        make_wheel(folder, "app", "2.0", requires=["lib>=1.3"]),
        make_wheel(folder, "lib", "1.0"),
        make_wheel(folder, "plugin", "0.1b0", requires=["lib"]),
    ]
    monkeypatch.setenv("PIP_INDEX_URL", write_index(tmp_path / "i", wheels))
    return folder


def test_a_pre_release_takes_the_place_of_a_release_only_where_nothing_else_does(venv: Path, early: Path) -> None:
    installed = make_wheel(early, "app", "1.0", requires=["lib<1"]), make_wheel(early, "lib", "1.0")
    last = resolve(venv, "app!=1.0", installed=installed, settles=("lib",))
    assert names(last) == ["app 2.0rc1"]
    assert any("app==2.0rc1" in note for note in last.notes)
    with pytest.raises(NoSolution) as raised:
        resolve(venv, "app!=1.0", installed=installed, settles=("lib",), stable=True)
    assert (raised.value.held, raised.value.early) == (("lib",), ("app==2.0rc1",))


def test_a_limit_that_mentions_a_pre_release_does_not_ask_for_one(venv: Path, early: Path) -> None:
    make_wheel(early, "app", "3.0rc1", requires=["lib>=1"])
    installed = make_wheel(early, "app", "1.0"), make_wheel(early, "lib", "1.4")
    asked = {"installed": installed, "find_links": (str(early),)}
    assert names(resolve(venv, "app>=2.0rc1", **asked)) == ["app 2.0"]  # type: ignore[arg-type]
    assert names(resolve(venv, "app==3.0rc1", **asked)) == ["app 3.0rc1"]  # type: ignore[arg-type]


def test_an_installed_pre_release_and_what_has_nothing_else_may_be_one(venv: Path, early: Path) -> None:
    installed = make_wheel(early, "app", "2.0b1"), make_wheel(early, "lib", "1.0")
    found = resolve(venv, "app>2.0b1", "plugin", installed=installed, stable=True)
    assert names(found) == ["app 2.0rc1", "plugin 0.1b0"]
