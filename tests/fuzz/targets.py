"""What is fuzzed: every reader of what strangers wrote, with its samples and the errors that it promises."""

from __future__ import annotations

import contextlib
from contextlib import closing
from pathlib import Path

import msgspec
from packaging.requirements import InvalidRequirement, Requirement

from envmedic import activation, shell
from envmedic.conda_meta import history, pins_and_marks, records
from envmedic.diagnosis import findings
from envmedic.diagnosis.vocabulary import derive
from envmedic.engine.store import journal
from envmedic.engine.store.layout import TransactionDirectory
from envmedic.errors import EnvmedicError, InternalError
from envmedic.installers.conda.configuration import spec_matching
from envmedic.installers.index import pages
from envmedic.installers.wheels import wheel_files
from envmedic.locks.formats import pylock, requirements
from envmedic.model.base import from_json, to_json
from envmedic.model.conda import CondaPackage
from envmedic.model.facts import Facts, Host, Interpreter
from envmedic.model.findings import Diagnosis
from envmedic.model.playbook import LoadedPlaybook, Playbook
from envmedic.playbook.matching.match import read_text
from envmedic.playbook.schema import loader
from envmedic.probe import metadata
from envmedic.probe.elf import fatbin, symbol_versions
from envmedic.probe.elf.dynamic import Elf, ElfError, gnu_hash
from envmedic.probe.environment import observe_environment
from envmedic.probe.layout import Layout
from envmedic.probe.packages import distributions, index_configuration
from envmedic.probe.prefix import import_paths, interpreter
from envmedic.tree import fingerprint
from tests.fuzz import configured, documents, hosts, samples
from tests.fuzz.target import CONDA, JSON, META, SHELL, Reader, Target


class _Bug(Exception):
    """An error that says of itself that it is a bug."""


def _refusing(read: Reader) -> Reader:
    """`read`, where an `InternalError` counts as the bug that it is."""

    def reader(data: bytes) -> object:
        try:
            return read(data)
        except InternalError as error:
            raise _Bug(error.summary) from error

    return reader


def _log(scratch: Path) -> Reader:
    playbooks = loader.load_all()

    def read(data: bytes) -> object:
        text = read_text(data.split(b"\n"), playbooks)
        found = findings.diagnose(text, None, playbooks, prefix=None, log=str(scratch / "log"))
        return from_json(to_json(found), Diagnosis, source="report")

    return read


def _playbook(scratch: Path) -> Reader:
    lines = [line for sample in samples.logs()[:10] for line in sample.split(b"\n")]

    def read(data: bytes) -> object:
        playbook = loader.parse(data, str(scratch / "playbook.yaml"))
        loaded = LoadedPlaybook(playbook=playbook, path="x", sha256="x", origin="file")
        assert from_json(to_json(playbook), Playbook, source="playbook") == playbook
        return findings.diagnose(read_text(lines, [loaded]), None, [loaded], prefix=None, log="log")

    return read


def _metadata(_: Path) -> Reader:
    def read(data: bytes) -> object:
        core = metadata.parse_core(data)
        to_json([core.name, core.version, core.requires])
        for text in core.requires:
            with contextlib.suppress(InvalidRequirement):
                Requirement(text)
        name = data[:255].decode("utf-8", "replace")
        return metadata.parse_wheel_tags(data), metadata.name_and_version(name), metadata.normalise(name)

    return read


def _elf(scratch: Path) -> Reader:
    file = scratch / "library.so"

    def read(data: bytes) -> object:
        file.write_bytes(data)
        with closing(Elf(file)) as elf:
            elf.lacking({b"PyInit_x": gnu_hash(b"PyInit_x"), b"memcpy": gnu_hash(b"memcpy")})
            code = fatbin.read(elf)
            indexes = symbol_versions.run_time_indexes(symbol_versions.needs(elf))
            return code, elf.undefined(indexes), symbol_versions.definitions(elf), elf.exports()

    return read


def _fatbin(_: Path) -> Reader:
    return lambda data: fatbin.summarise(fatbin.walk(data, 0, len(data)))


def _journal(scratch: Path) -> Reader:
    directory = TransactionDirectory(scratch / "20240501T120000000000Z-abcdef")
    directory.path.mkdir()

    def read(data: bytes) -> object:
        directory.journal.write_bytes(data)
        return journal.read(directory)

    return read


def _fingerprint(scratch: Path) -> Reader:
    file = scratch / "fingerprint"

    def read(data: bytes) -> object:
        file.write_bytes(data)
        return fingerprint.Fingerprint.load(file)

    return read


def _conda_record(_: Path) -> Reader:
    def read(data: bytes) -> object:
        record = records.decode(data)
        return list(record.files("lib/python3.11/site-packages")), [item.installed_sha256 for item in record.recorded()]

    return read


def _conda_history(_: Path) -> Reader:
    def read(data: bytes) -> object:
        revisions = history.read(data.decode("utf-8", "replace"))
        return (
            history.specs_in_force(revisions),
            history.state(revisions),
            pins_and_marks.pins(data.decode("utf-8", "replace")),
        )

    return read


def _conda_spec(_: Path) -> Reader:
    def read(data: bytes) -> object:
        return [_spec(line) for line in data.decode("utf-8", "replace").splitlines()[:64]]

    return read


def _spec(text: str) -> bool:
    package = CondaPackage(name="numpy", version="1.26.4", build="py311h1_0", record="conda-meta/numpy.json")
    try:
        return spec_matching.matches(text, package)
    except ValueError:
        return False


def _conda_state(scratch: Path) -> Reader:
    file = scratch / activation.CONDA_STATE
    file.parent.mkdir()
    (scratch / "etc" / "conda" / "activate.d").mkdir(parents=True)

    def read(data: bytes) -> object:
        file.write_bytes(data)
        return activation.activated(scratch, scratch, {})

    return read


def _script(scratch: Path) -> Reader:
    file = scratch / activation.ACTIVATE
    file.parent.mkdir()

    def read(data: bytes) -> object:
        file.write_bytes(data)
        text = data.decode("utf-8", "replace")
        list(shell.statements(text, {"PATH": "/bin"}, activation.AT_RUN_TIME))
        return activation.activated(scratch, scratch, {"PATH": "/bin"}), import_paths.parse_script(text)

    return read


def _pyvenv(_: Path) -> Reader:
    def read(data: bytes) -> object:
        layout = Layout(Path("/nonexistent"), "venv", metadata.parse_pyvenv(data), ("python3.11",))
        return layout.version, layout.includes_system_site

    return read


def _pth(_: Path) -> Reader:
    return lambda data: import_paths.parse_pth(data.decode("utf-8", "replace"))


def _settings(_: Path) -> Reader:
    def read(data: bytes) -> object:
        text = data.decode("utf-8", "replace")
        return index_configuration.parse_pip(text, "pip.conf"), index_configuration.parse_uv(text, "uv.toml")

    return read


def _answer(_: Path) -> Reader:
    def read(data: bytes) -> object:
        answer = interpreter.parse_answer(data.decode("utf-8", "replace"))
        if answer is None:
            return None
        found = interpreter._living(Layout(Path("/nonexistent"), "venv"), answer)
        return wheel_files.tag_ranks(found), to_json(found)

    return read


def _wheel(scratch: Path) -> Reader:
    file = scratch / "demo-1.0-py3-none-any.whl"

    def read(data: bytes) -> object:
        file.write_bytes(data)
        wheel_files.require_wheel(file, file.name)
        return wheel_files.requires(file)

    return read


def _wheel_names(_: Path) -> Reader:
    ranks = wheel_files.tag_ranks(Interpreter(path="p", starts=True, version="3.11.4"))

    def read(data: bytes) -> object:
        names = data.decode("utf-8", "replace").splitlines()[:64]
        return [wheel_files.rank(name, ranks) for name in names]

    return read


def _index(_: Path) -> Reader:
    page = "https://example.org/simple/demo/"

    def read(data: bytes) -> object:
        html = list(pages.from_html(data.decode("utf-8", "replace"), page))
        return html, list(pages.from_json(data, page))

    return read


def _requirements(_: Path) -> Reader:
    return lambda data: requirements.parse(data.decode("utf-8", "replace"), "requirements.txt")


def _pylock(_: Path) -> Reader:
    return lambda data: pylock.parse(data.decode("utf-8", "replace"), "pylock.toml")


def _facts(_: Path) -> Reader:
    return lambda data: from_json(data, Facts, source="host.json")


def _environment(scratch: Path) -> Reader:
    """Metadata in their place, read by the scan of a whole site-packages directory."""
    site = scratch / "lib" / "python3.11" / "site-packages"
    info = site / "demo-1.0.dist-info"
    info.mkdir(parents=True)
    egg = site / "old-1.0.egg-info"
    egg.mkdir()
    places = (info / "METADATA", info / "RECORD", info / "WHEEL", info / "direct_url.json", info / "INSTALLER",
              info / "top_level.txt", egg / "PKG-INFO", egg / "requires.txt", egg / "installed-files.txt",
              site / "link.egg-link")  # fmt: skip
    (info / "METADATA").write_bytes(samples.installed("METADATA")[0])

    def read(data: bytes) -> object:
        number, _, content = data.partition(b"\n")
        place = places[sum(number) % len(places)]
        before = place.read_bytes() if place.exists() else None
        place.write_bytes(content)
        try:
            return to_json([item.distribution for item in distributions.scan(site, scratch).installed])
        finally:
            place.unlink() if before is None else place.write_bytes(before)

    return read


def _prefix(scratch: Path) -> Reader:
    """A whole environment, one file of which is mutated."""
    site = scratch / "lib" / "python3.11" / "site-packages"
    for name, content in samples.PREFIX.items():
        path = scratch / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    info = site / "demo-1.0.dist-info"
    for name in ("METADATA", "RECORD", "WHEEL"):
        (info / name).write_bytes(samples.installed(name)[0])
    places = sorted(path for path in scratch.rglob("*") if path.is_file())

    def read(data: bytes) -> object:
        number, _, content = data.partition(b"\n")
        place = places[sum(number) % len(places)]
        before = place.read_bytes()
        place.write_bytes(content)
        try:
            found = observe_environment(scratch, {"PATH": "/bin", "HOME": str(scratch)}, deep=len(content) % 2 == 0)
            facts = Facts(host=Host(system="linux", machine="x86_64"), environment=found)
            return from_json(to_json(facts), Facts, source="facts"), derive(facts)
        finally:
            place.write_bytes(before)

    return read


_YAML = (b"- ", b": ", b"|\n", b">-\n", b"&a ", b"*a", b"<<: *a", b"!!python/object/apply:os.system ", b"!!int ", b"? ",
         b"---\n", b"%YAML 1.1\n", b"when:", b"all:", b"any:", b"not:", b"fact:", b"operator:", b"value:", b"matches", b"in",
         b"steps:", b"step: command", b"argv:", b"pattern:", b"sample:", b"(?P<x>", b"(?i)", b"\\1", b"(?=a)", b"{1,1000}",
         b"((a+)+)+", b"[^", b"\\pL", b"{torch.version}", b"{{", b"__class__", b"{0.__init__}", b"0o17", b"2024-05-01", b".inf")  # fmt: skip
TARGETS: tuple[Target, ...] = (
    Target(name="log", reader=_log, samples=samples.logs, words=(b"&lt;", b"\\u003c", b"\\n", b"</span>", b"\x1b[0m", b"| ")),
    Target(name="playbook", reader=_playbook, samples=samples.playbooks, promised=(EnvmedicError,), words=_YAML),
    Target(name="metadata", reader=_metadata, samples=lambda: samples.installed("METADATA"), words=META),
    Target(name="record", reader=lambda _: metadata.parse_record, samples=lambda: samples.installed("RECORD"), words=META),
    Target(name="direct-url", reader=lambda _: metadata.parse_direct_url, samples=lambda: samples.DIRECT_URLS, words=JSON),
    Target(name="elf", reader=_elf, samples=samples.libraries, promised=(ElfError,)),
    Target(name="fatbin", reader=_fatbin, samples=samples.fat_binaries, promised=(ElfError,), words=(b"\x50\xed\x55\xba",)),
    Target(name="journal", reader=_journal, samples=lambda: [samples.JOURNAL], promised=(EnvmedicError,), words=JSON),
    Target(name="fingerprint", reader=_fingerprint, samples=lambda: [samples.FINGERPRINT], promised=(ValueError,), words=JSON),
    Target(name="conda-record", reader=_conda_record, samples=lambda: [samples.CONDA_RECORD], promised=(ValueError,), words=JSON),
    Target(name="conda-history", reader=_conda_history, samples=lambda: [samples.HISTORY], words=CONDA),
    Target(name="conda-spec", reader=_conda_spec, samples=lambda: [samples.SPECS], words=CONDA),
    Target(name="conda-state", reader=_conda_state, samples=lambda: [samples.CONDA_STATE], promised=(ValueError,), words=JSON),
    Target(name="activation", reader=_script, samples=lambda: samples.SCRIPTS, promised=(ValueError,), words=SHELL),
    Target(name="pyvenv", reader=_pyvenv, samples=lambda: samples.PYVENV, words=(b"home = ", b"version = ", b"uv = ")),
    Target(name="pth", reader=_pth, samples=lambda: samples.PTH, words=(b"import ", b"#")),
    Target(name="settings", reader=_settings, samples=lambda: [*samples.PIP_CONF, *samples.UV_TOML],
           words=(b"[global]\n", b"[[index]]\n", b"[pip]\n", b"index-url = ", b'"""', b"'''", b"a.b.c = 1\n")),
    Target(name="answer", reader=_answer, samples=lambda: [samples.ANSWER], words=(b"'version': ", b"True", b"(", b"-", b"{")),
    Target(name="wheel", reader=_wheel, samples=samples.wheels, promised=(EnvmedicError,), words=(b"PK\x05\x06", b"PK\x01\x02")),
    Target(name="wheel-names", reader=_wheel_names, samples=lambda: [samples.WHEEL_NAMES], words=(b"-", b".whl", b"+", b"cp311")),
    Target(name="index", reader=_index, samples=lambda: [samples.INDEX_JSON, samples.INDEX_HTML], promised=(EnvmedicError,),
           words=(*JSON, b"<a href=", b"<base href=", b"http://[", b"//")),
    Target(name="requirements", reader=_requirements, samples=lambda: [samples.REQUIREMENTS], promised=(EnvmedicError,),
           words=(b"--hash=sha256:", b" @ ", b"-r ", b"--index-url ", b" \\\n", b"===")),
    Target(name="pylock", reader=_pylock, samples=lambda: [samples.PYLOCK], promised=(EnvmedicError,), words=(b"[[packages]]\n",)),
    Target(name="host-file", reader=_facts, samples=lambda: [b'{"schema": "envmedic.facts/1", "host": {"system": "linux"}}'],
           promised=(EnvmedicError,), words=JSON),
    Target(name="prefix", reader=_prefix, free=True, words=(*META, *JSON, *CONDA, *SHELL), samples=lambda: [
        bytes([number]) + b"\n" + one for number, one in enumerate(sorted(samples.PREFIX.values()) * 3)]),
    Target(name="site-packages", reader=_environment,
           samples=lambda: [bytes([number]) + b"\n" + one for number in range(10) for one in
                            (*samples.installed("METADATA")[:2], *samples.DIRECT_URLS, *samples.installed("RECORD")[:2])],
           words=(*META, *JSON)),
    *configured.TARGETS,
    *documents.TARGETS,
    *hosts.TARGETS,
)  # fmt: skip


def guarded(target: Target) -> Target:
    """`target`, of which internal errors are no promised ones."""
    return msgspec.structs.replace(target, reader=lambda scratch: _refusing(target.reader(scratch)))
