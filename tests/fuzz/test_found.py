"""What fuzzing found, kept as it was found: each input was once taken for a bug, never ended, or ended the process."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
from packaging.requirements import InvalidRequirement, Requirement

from envmedic import limits
from envmedic.conda_meta import condarc as condarc_text
from envmedic.engine.stage import relocate
from envmedic.engine.verify.kernel_session import MARK, KernelSession
from envmedic.errors import EnvmedicError, InputError, InvalidPlaybook
from envmedic.installers.conda.configuration import condarc
from envmedic.installers.index import configuration
from envmedic.installers.resolution import requirement_files, uv_options
from envmedic.installers.wheels import wheel_files
from envmedic.locks import reading
from envmedic.model.checks import Check, Outcome
from envmedic.model.ports import ResolveRequest
from envmedic.planner.guard import judge
from envmedic.playbook.schema import loader
from envmedic.probe import metadata
from envmedic.probe.packages import index_configuration
from envmedic.probe.prefix import finder
from envmedic.tree import fingerprint
from tests.fuzz import configured
from tests.fuzz.targets import TARGETS, guarded

SECRET = "hf_abcdefghijklmnopqrstuvwxyz0123"
DEEP = 100_000
SHIPPED = loader.shipped_directory()


def read(target: str, data: bytes, scratch: Path) -> object:
    found = next(item for item in TARGETS if item.name == target)
    return guarded(found).reader(scratch)(data)


@pytest.mark.parametrize("data", configured._bombs(b"version: 1\nmetadata: *x1\npackage"))
@pytest.mark.parametrize("target", ["conda-lock"])
def test_aliases_that_multiply_or_contain_themselves_are_refused(target: str, data: bytes, tmp_path: Path) -> None:
    with pytest.raises(EnvmedicError):
        read(target, data, tmp_path)


@pytest.mark.parametrize("deep", ["[" * DEEP, "- " * DEEP, "{a: " * DEEP], ids=["flow", "block", "map"])
def test_lists_within_lists_of_a_lock_do_not_end_the_process(deep: str, tmp_path: Path) -> None:
    lock = tmp_path / "conda-lock.yml"
    lock.write_text(f"version: 1\npackage: {deep}")
    with pytest.raises(InputError, match="not YAML"):
        reading.read(lock)


@pytest.mark.parametrize(
    "entries",
    ["[{platform: linux-64}]", "[1]", "{a: b}", "[{name: !!timestamp x}]", "[{name: !!int ''}]", "[{name: {[a]: b}}]"],
)
def test_entries_that_are_none_of_a_lock_are_refused(entries: str, tmp_path: Path) -> None:
    lock = configured.CONDA_LOCK.partition(b"package:")[0].decode() + f"package: {entries}\n"
    (tmp_path / "conda-lock.yml").write_text(lock)
    with pytest.raises(InputError, match=r"conda-lock file|not YAML"):
        reading.read(tmp_path / "conda-lock.yml")


NESTED = f"scipy; {'(' * 900}python_version > '3'{')' * 900}"


def test_a_requirement_that_nests_too_deeply_to_be_read_is_none() -> None:
    stated = metadata.parse_core(f"Name: demo\nRequires-Dist: {NESTED}\nRequires-Dist: numpy>1\n".encode()).requires
    assert stated[1:] == ("numpy>1",)
    assert wheel_files.requirements(f"Name: demo\nRequires-Dist: {NESTED}\n") == stated[:1]
    with pytest.raises(InvalidRequirement):
        Requirement(stated[0])


def test_a_marker_of_many_parts_is_read() -> None:
    text = "numpy; " + " or ".join(f"(python_version == '3.{minor}' and (os_name == 'posix'))" for minor in range(40))
    (stated,) = metadata.parse_core(f"Name: demo\nRequires-Dist: {text}\n".encode()).requires
    assert stated == text
    assert Requirement(stated).name == "numpy"


def test_lists_of_requirements_may_nest_as_deeply(tmp_path: Path) -> None:
    file = tmp_path / "requirements.txt"
    file.write_text(f"{NESTED}\nnumpy\n")
    assert [item.name for item in requirement_files.requirements(str(file))] == ["numpy"]
    with pytest.raises(InputError, match="no requirement"):
        reading.read(file)


def test_a_playbook_or_constraint_that_nests_as_deeply_is_told_in_words() -> None:
    book = (SHIPPED / "bitsandbytes-cuda.yaml").read_text(encoding="utf-8")
    name = "    requirements: ["
    assert name in book
    with pytest.raises(InvalidPlaybook) as refused:
        loader.parse(book.replace(name, f'{name}"{NESTED}", ', 1).encode(), "own.yaml")
    assert "is not a requirement" in "\n".join(refused.value.details)
    assert judge._requirement(NESTED) is None


@pytest.mark.parametrize("data", configured._bombs(b"envs_dirs"))
def test_a_condarc_is_refused_where_its_values_multiply(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "env").mkdir()
    (tmp_path / "env" / ".condarc").write_bytes(data)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert finder.parse_condarc(data.decode() + "a: &a 1\nb: &a 2\n") == []
    with pytest.raises(InputError):
        condarc.read(tmp_path / "env", None, {"HOME": str(tmp_path)})


def test_a_value_may_be_meant_often_as_long_as_all_stays_small() -> None:
    shared = ["a", "b"]
    limits.require({"one": shared, "two": [shared, shared]}, most=20)
    with pytest.raises(ValueError, match="more than 10"):
        limits.require({"one": shared, "two": [shared, shared]}, most=10)
    for _ in range(limits.DEEPEST + 1):
        shared = [shared]  # type: ignore[list-item]
    with pytest.raises(ValueError, match="deep"):
        limits.require(shared)


@pytest.mark.parametrize("name", ["pip.conf", ".condarc"])
def test_a_link_out_of_an_environment_tells_nothing_of_what_it_leads_to(name: str, tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text(f"{SECRET}: [\n")
    env = tmp_path / "env"
    env.mkdir()
    (env / name).symlink_to(key)
    with pytest.raises(InputError) as raised:
        (configuration.read_pip if name == "pip.conf" else _condarc)(env, {"HOME": str(tmp_path)})
    error = raised.value
    assert SECRET not in f"{error.summary} {error.cause} {error.hint} {error.details}"
    assert "link" in str(error.cause)


def _condarc(prefix: Path, environ: dict[str, str]) -> object:
    return condarc.read(prefix, None, environ)


def test_a_users_own_file_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "dotfiles").write_text("[global]\nindex-url = https://example.org/simple\n")
    (tmp_path / ".pip").mkdir()
    (tmp_path / ".pip" / "pip.conf").symlink_to(tmp_path / "dotfiles")
    environ = {"HOME": str(tmp_path), "XDG_CONFIG_DIRS": str(tmp_path)}
    assert configuration.read_pip(tmp_path / "env", environ).index_url == "https://example.org/simple"


@pytest.mark.parametrize("name", ["pip.conf", ".condarc"])
def test_a_login_in_a_damaged_file_is_not_shown(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("channels: [https://me:sesame@example.org/simple\n  - {\n")
    with pytest.raises(InputError) as raised:
        (configuration.read_pip if name == "pip.conf" else _condarc)(tmp_path, {"HOME": str(tmp_path)})
    assert "sesame" not in str(raised.value.cause)


@pytest.mark.parametrize(
    "text",
    [
        f"no-index = {'9' * 5000}",
        "pip = 1",
        "index = 1",
        "[[index]]\nurl = 7",
        "index-url = ['x']",
        "a = " + "[" * 2000,
    ],
    ids=["digits", "table", "list", "number", "type", "nesting"],
)
def test_values_of_uvs_file_that_uv_would_not_take_are_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "uv.toml").write_text(text)
    with pytest.raises(InputError, match="configuration file"):
        configuration.read_uv({"UV_CONFIG_FILE": str(tmp_path / "uv.toml"), "HOME": str(tmp_path)})


def test_a_requirements_file_may_name_files_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("-r a\0b\n")
    with pytest.raises(InputError, match="cannot be read"):
        requirement_files.requirements(str(tmp_path / "requirements.txt"))


def test_a_plan_for_a_prefix_that_cannot_be_is_read(tmp_path: Path) -> None:
    plan = next(item for item in TARGETS if item.name == "plan-file").samples()[0]
    long = plan.replace(b"/home/me/vision/env", b"/home/me/vision/env" + b"x" * 5000)
    assert read("plan-file", long, tmp_path) is not None


def test_a_fingerprint_nested_deeply_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "fingerprint").write_text('{"format":1,"entries":' + "[" * DEEP)
    with pytest.raises(ValueError, match="damaged"):
        fingerprint.Fingerprint.load(tmp_path / "fingerprint")


@pytest.mark.parametrize(
    "message",
    [
        '{"outcome": {"index": 0, "check": "matmul"}}',
        '{"outcome": {"index": -1, "check": "matmul", "status": "pass"}}',
        '{"outcome": {"index": 1, "check": "matmul", "status": "pass"}}',
        '{"outcome": {"index": 1e30, "check": "matmul", "status": "pass"}}',
        '{"outcome": {"index": 0, "check": "matmul", "status": "splendid"}}',
        '{"outcome": {"index": 0, "check": "matmul", "status": "pass", "seconds": NaN}}',
        '{"outcome": ["\\ud800"]}',
        "[" * DEEP,
    ],
)
def test_what_looks_like_a_report_of_a_check_and_is_none_is_output(message: str) -> None:
    heard: list[Outcome] = []
    session = KernelSession([Check(name="matmul")], lambda _, outcome: heard.append(outcome))
    assert not session.hear(MARK + message)
    assert (heard, session.ended) == ([], False)


def test_a_report_with_bytes_that_are_no_text_is_heard() -> None:
    heard: list[Outcome] = []
    session = KernelSession([Check(name="matmul")], lambda _, outcome: heard.append(outcome))
    assert session.hear(
        MARK + '{"outcome": {"index": 0, "check": "matmul", "status": "fail", "detail": "\\udcff \\ud83d\\ude00"}}'
    )
    assert heard[0].detail == "\\udcff \U0001f600"


@pytest.mark.parametrize(
    "line", ["index-url = https://me:sesame@[x/simple", "find-links = //[x", "extra-index-url = http://[::1"]
)
def test_an_address_that_is_none_is_refused_without_its_login(line: str, tmp_path: Path) -> None:
    (tmp_path / "pip.conf").write_text(f"[global]\n{line}\n")
    found = configuration.read_pip(tmp_path, {"HOME": str(tmp_path)})
    told = configuration.IndexConfiguration(pip=found, uv=configuration.UvConfiguration())
    with pytest.raises(InputError, match="no address") as raised:
        uv_options.translate(told, ResolveRequest(pins=()), {})
    assert "sesame" not in f"{raised.value.summary} {raised.value.cause}"


def test_a_directory_whose_name_is_too_long_is_not_there() -> None:
    told = configuration.IndexConfiguration(
        pip=configuration.PipConfiguration(find_links=("/" + "x" * 5000,)), uv=configuration.UvConfiguration()
    )
    assert uv_options.translate(told, ResolveRequest(pins=()), {}).arguments == ()
    with pytest.raises(InputError, match="does not exist"):
        uv_options.translate(told, ResolveRequest(pins=(), find_links=("/" + "x" * 5000,)), {})


@pytest.mark.parametrize("first", [b"#!/opt/s/", b"#!/bin/sh\n'''exec' /opt/s/", b"#!/bin/sh\n'''exec' '/opt/s/"])
def test_a_script_of_one_long_line_is_looked_through_once(first: bytes) -> None:
    script = first + b"x'" * 2_000_000
    assert relocate._Paths(b"/opt/s", b"/opt/f")._script(script) == script


@pytest.mark.parametrize("deep", ["[" * DEEP, "- " * DEEP, "? [\n" * DEEP], ids=["flow", "block", "keys"])
def test_a_condarc_that_nests_deeply_is_not_read_at_all(deep: str) -> None:
    with pytest.raises(ValueError, match="nest too deeply"):
        condarc_text.load(f"envs_dirs: {deep}")


def test_blanks_of_a_pip_conf_are_passed_over_once(tmp_path: Path) -> None:
    blanks = " " * 300_000
    text = f"[global]\nindex-url{blanks}={blanks}https://example.org/simple{blanks}\nextra-index-url =\n{blanks}a{blanks}b\nin{blanks}x\n"
    assert [item.key for item in index_configuration.parse_pip(text, "pip.conf")] == ["unreadable"]
    sound = text.rpartition("in")[0]
    told = {item.key: item.value for item in index_configuration.parse_pip(sound, "pip.conf")}
    assert told["index-url"] == "https://example.org/simple"
    (tmp_path / "pip.conf").write_text(sound.replace(blanks, blanks[:100_000]))
    found = configuration.read_pip(tmp_path, {"HOME": str(tmp_path)})
    assert (found.index_url, found.extra_index_urls) == ("https://example.org/simple", ("a", "b"))


@pytest.mark.parametrize(
    "text",
    ["custom_channels: {a: null}", "custom_channels: {a: [b]}", "custom_channels: {a: {auth: [b]}}", "custom_multichannels: {a: b}",
     "custom_multichannels: {a: [1]}", "proxy_servers: {http: [a]}", "channel_alias: [a]", "channels: {a: b}", "default_channels: [1]"],
)  # fmt: skip
def test_channels_that_conda_would_not_take_are_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / ".condarc").write_text(text)
    with pytest.raises(InputError, match="conda does not take"):
        _condarc(tmp_path, {"HOME": str(tmp_path)})


def test_channels_in_parts_are_taken(tmp_path: Path) -> None:
    (tmp_path / ".condarc").write_bytes(configured.CONDARC)
    found = condarc.read(tmp_path, None, {"HOME": str(tmp_path), "MIRROR": "m.example"})
    assert found["channel_alias"] == "https://m.example/conda"
    assert found["custom_channels"]["local"]["location"] == "/srv/conda"


def test_a_record_that_is_no_table_is_left_as_it_is(tmp_path: Path) -> None:
    info = tmp_path / "lib" / "python3.11" / "site-packages" / "demo-1.0.dist-info"
    info.mkdir(parents=True)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "demo").write_text("#!/opt/staged/bin/python\n")
    record = "../../../bin/demo,sha256=x,1\n" + "x" * 200_000 + ",,\n"
    (info / "RECORD").write_text(record)
    assert relocate.rewrite(tmp_path, Path("/opt/staged"), Path("/opt/final")).rewritten == ("bin/demo",)
    assert (info / "RECORD").read_text() == record
