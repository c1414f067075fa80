"""Round trips: what a test has repaired or found healthy is locked, made again from the lock, and locked again.

With ``ENVMEDIC_TEST_LOCKS=1`` this is done with every environment of every test that says so (`settled`), once for each
set of packages of a case.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from difflib import unified_diff
from pathlib import Path
from typing import Any

import pytest

from tests.conda.case import CondaCase
from tests.conda.referee import builds
from tests.support.native_case import WATCHERS, Done, NativeCase
from tests.support.venvs import make_venv, python_of, site_packages, uv

NAMES = {"pylock": "pylock.toml", "requirements": "requirements.txt", "conda-lock": "conda-lock.yml"}
"""Format → a name that its tools know it by."""
_OF_THE_FILE = ("manager", "name", "version", "kind", "url", "sha256", "md5", "build", "channel", "subdir", "index")
_ENTRY = "round trip"
_CONDA_LOCK = "import sys; from conda_lock import main; sys.exit(main())"


def entries(lock: dict[str, Any]) -> list[dict[str, Any]]:
    """The packages of a lock, without how it is known what they are and without those that it lacks."""
    lacking = {item["name"] for item in lock["incomplete"]}
    found = [item for item in lock["packages"] if item["name"] not in lacking]
    return [{key: item[key] for key in _OF_THE_FILE} for item in found]


def checks(verification: dict[str, Any]) -> dict[str, str]:
    """How each check came out."""
    return {item["check"] + (item["device"] or ""): item["status"] for item in verification["outcomes"]}


def sealed(file: Path) -> list[str]:
    """The lines of a lock that hold its digest."""
    return [line for line in file.read_text(encoding="utf-8").splitlines() if "digest" in line]


def difference(*files: Path) -> str:
    """How two locks differ, for a failed assertion."""
    one, other = (file.read_text(encoding="utf-8").splitlines() for file in files)
    return "\n".join(unified_diff(one, other, lineterm="", n=4))


@dataclass(frozen=True)
class Trip:
    """One environment's way through a lock and back."""

    case: NativeCase | CondaCase
    scratch: Path
    variables: dict[str, str]
    """Further ones that its repair was run with."""

    def lock(self, form: str, prefix: Path, file: Path, *, code: int = 0) -> Done:
        """``envmedic lock``, complete but for what the case itself cannot give."""
        rest = ("--allow-incomplete",) if code else ()
        options = ("--format", form, "-o", str(file), "--fetch-hashes", "--json", *rest)
        done = self.case.envmedic("lock", "-p", str(prefix), *options, **self.variables)
        assert done.code == code, done.told()
        return done

    def verify(self, prefix: Path, *more: str) -> Done:
        """``envmedic verify``."""
        return self.case.envmedic("verify", "--json", "--no-gpu", "-p", str(prefix), *more, **self.variables)

    def there_and_back(self, form: str) -> str:
        """Fail unless the environment comes back from its lock. Returns what the lock lacks, by name."""
        file, new = self.scratch / NAMES[form], self.place(form)
        lacking = self.lacking()
        if lacking:
            self.refused(form, file, lacking)
        before = self.lock(form, self.case.prefix, file, code=1 if lacking else 0)
        assert {item["name"] for item in before.document["incomplete"]} == lacking, before.told()
        find = ("-p", str(new), "--no-gpu", "--json")
        made = self.case.envmedic("create", "--lock", str(file), *find, **self.variables)
        assert "differences" in made.document, made.told()
        assert (made.document["differences"], made.document["unproven"]) == ([], []), made.told()
        again = self.lock(form, new, self.scratch / f"again-{file.name}")
        assert entries(again.document) == entries(before.document)
        same = sealed(file) == sealed(self.scratch / f"again-{file.name}") != []
        assert same, difference(file, self.scratch / f"again-{file.name}")
        if not lacking and not self.keeps_variables():
            assert checks(made.document) == checks(self.verify(self.case.prefix).document)
            assert self.program(new) == self.program(self.case.prefix)
        return ", ".join(sorted(lacking))

    def keeps_variables(self) -> bool:
        """Whether the environment sets variables when it is activated: they are part of a repair, and of no lock."""
        activate = self.case.prefix / "bin" / "activate"
        in_script = activate.exists() and "envmedic" in activate.read_text(encoding="utf-8")
        return in_script or (self.case.prefix / "conda-meta" / "state").exists()

    def place(self, form: str) -> Path:
        """Where the environment is made again."""
        return self.scratch / f"from-{form}"

    def refused(self, form: str, file: Path, lacking: Iterable[str]) -> None:
        """Fail unless what cannot be locked is named, and nothing written."""
        options = ("--format", form, "-o", str(file), "--fetch-hashes")
        done = self.case.envmedic("lock", "-p", str(self.case.prefix), *options, **self.variables)
        assert (done.code, file.exists()) == (1, False), done.told()
        for name in lacking:
            assert re.search(rf"^ +(.*, )?{re.escape(name)}([ ,]|$)", done.err, re.MULTILINE), done.told()

    def lacking(self) -> set[str]:
        """Distributions that were installed from a directory, or of which there is no wheel or archive in the room."""
        found = set()
        for info in site_packages(self.case.prefix).glob("*.dist-info"):
            name, version = info.stem.rsplit("-", 1)
            direct = info / "direct_url.json"
            local = direct.exists() and "dir_info" in json.loads(direct.read_text(encoding="utf-8"))
            files = self.room().rglob(f"{name}-{version}[-.]*") if not local else ()
            if not any(path.name.endswith((".whl", ".tar.gz")) for path in files):
                found.add(re.sub(r"[-_.]+", "-", name).lower())
        return (found - self.of_conda()) | self.unreadable()

    def unreadable(self) -> set[str]:
        """Records of conda's that do not say what was installed, by their names."""
        records = self.case.prefix.glob("conda-meta/*.json")
        return {
            path.stem
            for path in records
            if not path.read_bytes().strip().startswith(b"{") or b"build" not in path.read_bytes()
        }

    def room(self) -> Path:
        """Where the wheels of the case are."""
        return self.case.room if isinstance(self.case, NativeCase) else self.case.room.root

    def of_conda(self) -> set[str]:
        """Distributions that conda's packages brought."""
        infos = site_packages(self.case.prefix).glob("*.dist-info/INSTALLER")
        ours = [path for path in infos if path.read_text(encoding="utf-8").strip() == "conda"]
        return {re.sub(r"[-_.]+", "-", path.parent.stem.rsplit("-", 1)[0]).lower() for path in ours}

    def program(self, prefix: Path) -> tuple[int, str]:
        """How the user's program ends with the Python of an environment."""
        if isinstance(self.case, CondaCase):
            argv = [str(prefix / "bin" / "python"), "-c", "import torch, torchvision; print(torch.__version__)"]
        else:
            argv = [str(python_of(prefix)), str(self.case.program)]
        done = self.attempt(argv)
        return done.returncode, done.stdout

    def attempt(self, argv: list[str], **more: str) -> subprocess.CompletedProcess[str]:
        """Run a command as the user."""
        environment = {**self.case.variables(), **more}
        return subprocess.run(
            argv, env=environment, capture_output=True, text=True, timeout=1800, check=False, cwd=self.scratch
        )

    def by(self, argv: list[str], **more: str) -> str:
        """The same of one that must succeed."""
        done = self.attempt(argv, **more)
        assert done.returncode == 0, f"{' '.join(argv)}\n{done.stdout}{done.stderr}"
        return done.stdout

    def accepted_by_uv(self, form: str) -> None:
        """Fail unless uv makes the same of the lock."""
        file, theirs = self.scratch / NAMES[form], make_venv(self.scratch / f"by-uv-{form}")
        more = {"UV_DEFAULT_INDEX": self.case.index, "UV_LINK_MODE": "copy"}
        self.by([uv(), "pip", "sync", "-q", "--python", str(python_of(theirs)), str(file)], **more)
        done = self.verify(theirs, "--lock", str(file))
        assert done.document["differences"] == [], done.told()

    def accepted_by_pip(self) -> None:
        """Fail unless pip takes every entry of the requirements, by its hash."""
        file, theirs = self.scratch / NAMES["requirements"], make_venv(self.scratch / "by-pip")
        argv = [sys.executable, "-m", "pip", "--python", str(python_of(theirs)), "install", "--dry-run", "-q"]
        self.by([*argv, "--report", "report.json", "--no-deps", "--require-hashes", "-r", str(file)])
        report = json.loads((self.scratch / "report.json").read_text(encoding="utf-8"))
        asked = re.findall(r"--hash=sha256:[0-9a-f]{64}", file.read_text(encoding="utf-8"))
        assert len(report["install"]) == len(asked)

    def accepted_by_conda(self) -> None:
        """Fail unless conda-lock renders the lock, and conda lists what was made from it as it lists the original."""
        assert isinstance(self.case, CondaCase)
        new, file = self.place("conda-lock"), self.scratch / NAMES["conda-lock"]
        assert builds(new) == builds(self.case.prefix)
        listed = self.case.referee.list_explicit(new)
        assert listed == self.case.referee.list_explicit(self.case.prefix)
        self.by([sys.executable, "-c", _CONDA_LOCK, "render", "--kind", "explicit", str(file)])
        rendered = (self.scratch / "conda-linux-64.lock").read_text(encoding="utf-8").splitlines()
        urls = sorted(line.partition("#")[0] for line in rendered if "://" in line and not line.startswith("#"))
        assert urls == sorted(line.partition("#")[0] for line in listed)


def go(trip: Trip) -> list[str]:
    """All of it for one environment; what its locks lack, by format."""
    if isinstance(trip.case, CondaCase):
        told = [f"conda-lock {trip.there_and_back('conda-lock')}"]
        trip.accepted_by_conda()
        return told
    told = [f"{form} {trip.there_and_back(form)}" for form in ("pylock", "requirements")]
    trip.accepted_by_uv("pylock")
    trip.accepted_by_uv("requirements")
    trip.accepted_by_pip()
    return told


@dataclass
class RoundTrips:
    """The plugin of a test run that does it."""

    seen: set[tuple[str, str]] = field(default_factory=set)
    item: pytest.Item | None = None

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Any:  # pytest's own
        """Let what this test settles be known by its name."""
        self.item = item
        WATCHERS.append(self.settled)
        try:
            return (yield)
        finally:
            WATCHERS.remove(self.settled)

    def settled(self, case: NativeCase | CondaCase, variables: dict[str, str]) -> None:
        """Take the environment there and back, unless one of the same packages was."""
        assert self.item is not None
        key = (str(self.item.path.parent), _packages(case.prefix))
        if key in self.seen:
            return
        self.seen.add(key)
        scratch = Path(tempfile.mkdtemp(prefix="round-trip-"))
        began = time.monotonic()
        chosen = {name: value for name, value in variables.items() if name.startswith("ENVMEDIC_")}
        told = go(Trip(case, scratch, chosen))
        shutil.rmtree(scratch)
        self.item.user_properties.append((_ENTRY, [self.item.nodeid, told, time.monotonic() - began]))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """How many there were, and of what not all can be locked."""
        reports = [report for group in terminalreporter.stats.values() for report in group if hasattr(report, "when")]
        done = [
            value
            for report in reports
            if report.when == "call"
            for key, value in report.user_properties
            if key == _ENTRY
        ]
        counts = Counter(text.partition(" ")[0] for _, told, _ in done for text in told)
        terminalreporter.section("round trips")
        terminalreporter.line(f"{len(done)} environments came back from their locks: {dict(counts)}")
        terminalreporter.line(f"{sum(took for _, _, took in done):.0f} s")
        for test, told, _ in done:
            for text in told:
                form, _, lacking = text.partition(" ")
                if lacking:
                    terminalreporter.line(f"{test}: {form} says that it cannot hold {lacking}")


def _packages(prefix: Path) -> str:
    """What is installed, by the names of its metadata."""
    infos = [path.name for path in site_packages(prefix).glob("*.dist-info")]
    records = [path.name for path in (prefix / "conda-meta").glob("*.json")]
    return " ".join(sorted([*infos, *records]))
