"""Solver of conda packages: a request and an environment in, an exact change out."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envmedic.conda_meta import small_files
from envmedic.conda_meta.pins_and_marks import PINNED
from envmedic.conda_meta.urls import without_credentials, without_subdir
from envmedic.errors import InputError, InstallerError, NetworkError, NotAnEnvironment
from envmedic.installers.conda.configuration.channels import ChannelSource, unique
from envmedic.installers.conda.configuration.configuration import CondaConfiguration
from envmedic.installers.conda.configuration.credentials import logins, open_address, shown
from envmedic.installers.conda.solve import helper_client, kept_pins, reasons, virtual_packages
from envmedic.installers.conda.solve.solver_request import SolverRequest, matches
from envmedic.model.conda import CondaArtifact, CondaChange, CondaExecutor, CondaPackage, CondaReference, CondaRequest
from envmedic.model.events import Emit, Notice
from envmedic.model.facts import Environment, Host

SOLVE_S = 600.0
_SOLVER_S = 300
_INSTALLED_ONLY = frozenset({
    "files", "paths_data", "requested_spec", "requested_specs", "link", "extracted_package_dir",
    "package_tarball_full_path", "auth",
})  # fmt: skip


@dataclass(frozen=True)
class Solver:
    """The solver for one environment."""

    environment: Environment
    host: Host
    configuration: CondaConfiguration
    emit: Emit
    repodata: str | None
    """Cache directory for the index of channels; None for py-rattler's own."""
    executor: CondaExecutor
    timeout_s: float = SOLVE_S

    def change(self, request: CondaRequest) -> CondaChange:
        """The exact change. Raises NoSolution, NetworkError, InstallerError or InputError."""
        conda = self.environment.conda
        if conda is None:
            raise NotAnEnvironment(f"{self.environment.prefix} is no conda environment", hint="Name one with -p PREFIX")
        pins = tuple(pin for pin in (*conda.pinned, *self.configuration.pinned) if pin not in request.lifted)
        question = SolverRequest(request, conda.packages, virtual_packages.packages(self.host), pins)
        answer = self._ask(question, tolerant=False)
        if "unsolvable" in answer:
            # Unmet requirements that were there before should not prevent a repair. If this fails too, the first
            # explanation counts: it speaks of the environment as it is.
            first, answer = answer, self._ask(question, tolerant=True)
            answer = first if "unsolvable" in answer else answer
        if "unsolvable" in answer:
            # Without the channel that could not be read, "no solution" would not be true.
            if answer["skipped"]:
                raise unreachable(answer["skipped"][0]["why"], offline=self.configuration.offline)
            refusal = reasons.no_solution(answer["unsolvable"], _title(request), question.virtual)
            raise kept_pins.blamed(refusal, self._places(question))
        for item in answer["skipped"]:
            text = f"{shown(item['channel'])} was left out: {_first(item['why'])}"
            self.emit(Notice(code="channel-skipped", message=text, level="warning"))
        change = self._compared(question, answer["packages"])
        kept_pins.require(change, self._places(question))
        return change

    def _places(self, question: SolverRequest) -> dict[str, str]:
        """Where each pin stands: file and line, or the variable; in words where that is not known."""
        path = Path(self.environment.real_prefix) / PINNED
        data = small_files.read(path) or b""
        lines = [line.strip() for line in data.decode("utf-8", "replace").splitlines()]
        numbered = {line: f"{path}:{number}" for number, line in enumerate(lines, 1)}
        known = {**self.configuration.pin_places, **numbered}
        return {pin: known.get(pin, "pinned_packages of conda's configuration") for pin in question.pins}

    def _ask(self, question: SolverRequest, *, tolerant: bool) -> dict[str, Any]:
        pinned, preferred = question.documents(tolerant=tolerant)
        request = question.request
        own = [ChannelSource(url, (url,)) for url in request.channels]
        known = logins(self.configuration.addresses)
        answer = helper_client.ask(
            {
                "do": "solve",
                "channels": [self._channel(item, known) for item in unique([*own, *self.configuration.sources])],
                "subdirs": [virtual_packages.subdir(self.host), "noarch"],
                "specs": [self.configuration.spec(text) for text in question.specs()],
                "constraints": [self.configuration.spec(text) for text in question.constraints()],
                "pinned": pinned,
                "preferred": preferred,
                "virtual": question.virtual,
                "this_machine": virtual_packages.of_this_machine(self.host),
                "priority": self.configuration.priority,
                "offline": request.offline or self.configuration.offline,
                "repodata": self.repodata,
                "network": self.configuration.network,
                "logins": known,
                "solver_s": _SOLVER_S,
            },
            timeout_s=self.timeout_s,
        )
        if "invalid" in answer:
            raise InputError(
                "A spec of a conda package cannot be read",
                cause=answer["invalid"].splitlines()[0],
                hint="Correct it: in the playbook, in conda-meta/pinned, or in pinned_packages of conda's configuration",
            )
        if "unreachable" in answer:
            raise unreachable(answer["unreachable"], offline=request.offline or self.configuration.offline)
        return answer

    def _channel(self, source: ChannelSource, known: dict[str, Any]) -> dict[str, Any]:
        return {
            "name": source.name,
            "urls": [open_address(url, known) for url in source.urls],
            "optional": source.optional,
        }

    def _compared(self, question: SolverRequest, solution: list[dict[str, Any]]) -> CondaChange:
        """The difference between solution and installed packages."""
        installed = {item.name: item for item in question.packages}
        wanted = {item["name"]: item for item in solution}
        # noarch packages live in lib/python3.X/site-packages: another minor version of Python needs them linked again.
        before = _minor(installed["python"].version) if "python" in installed else ""
        after = _minor(str(wanted["python"]["version"])) if "python" in wanted else ""
        relinked = before != after
        again = {
            item.name
            for item in question.packages
            if matches(item.name, question.request.reinstall) or (relinked and item.noarch == "python")
        }
        new = [name for name, item in wanted.items() if name in again or not _same(item, installed.get(name))]
        gone = [name for name in installed if name not in wanted or name in new]
        left = [name for name in gone if name not in wanted]
        return CondaChange(
            remove=tuple(reference(installed[name]) for name in sorted(gone)),
            install=tuple(self._artifact(wanted[name], installed.get(name)) for name in sorted(new)),
            specs=question.request.specs,
            remove_specs=tuple(sorted(name for name in left if question.gone(name) or installed[name].requested)),
            executor=self.executor,
        )

    def _artifact(self, item: Mapping[str, Any], installed: CondaPackage | None) -> CondaArtifact:
        metadata = {key: value for key, value in item.items() if key not in _INSTALLED_ONLY}
        if installed is not None and _same(item, installed):
            # A reinstall: the channel may have patched its metadata since, and the record is to stay as it was.
            metadata = self._recorded(installed) or metadata
        url = without_credentials(str(item["url"]))
        metadata |= {"url": url, "channel": without_subdir(without_credentials(str(item.get("channel") or url)))}
        return CondaArtifact(
            name=item["name"],
            version=item["version"],
            build=item["build"],
            channel=without_subdir(url.rpartition("/")[0]),
            subdir=item["subdir"],
            filename=item.get("fn") or url.rpartition("/")[2],
            url=url,
            sha256=item.get("sha256"),
            md5=item.get("md5"),
            size_bytes=item.get("size"),
            distributions=installed.distributions if installed is not None else (),
            metadata=metadata,
        )

    def _recorded(self, installed: CondaPackage) -> dict[str, Any] | None:
        """Full metadata from the record of an installed package, if it is readable."""
        path = Path(self.environment.real_prefix) / installed.record
        if not path.is_file():
            return None
        try:
            document: dict[str, Any] = json.loads(path.read_bytes())
        except ValueError:
            return None  # the metadata of the solver will do
        return {key: value for key, value in document.items() if key not in _INSTALLED_ONLY}


def reference(package: CondaPackage) -> CondaReference:
    """Reference to an installed package, for a change."""
    return CondaReference(
        name=package.name,
        version=package.version,
        build=package.build,
        record=package.record or f"conda-meta/{package.name}-{package.version}-{package.build}.json",
        distributions=package.distributions,
    )


def unreachable(text: str, *, offline: bool) -> NetworkError:
    """The error for a channel that cannot be read, or a package that cannot be downloaded."""
    clean = shown(text)
    # py-rattler has no separate exception for it; the status stands in the text.
    if "401" in clean or "403" in clean:
        hint = "Give conda a login or token for that channel, or take the channel out of its configuration"
    elif offline:
        hint = "Run once without --offline, so that what the channels hold is kept"
    else:
        hint = "Check network, proxy and the channel's address, or use --offline with what is kept on this machine"
    # The last line of py-rattler's chain is the actual failure, the first one says what was tried.
    causes = [line.removeprefix("Caused by: ") for line in clean.splitlines()[1:]]
    return NetworkError(
        "A conda channel cannot be read",
        cause=_first(clean) + (f": {causes[-1]}" if causes else ""),
        hint=hint,
        details=tuple(clean.splitlines()),
    )


def _first(text: str) -> str:
    return shown(text.splitlines()[0]) if text else ""


def _title(request: CondaRequest) -> str:
    asked = [", ".join(request.specs), f"an environment without {', '.join(request.remove)}" if request.remove else ""]
    return " and ".join(part for part in asked if part) or "what is asked for"


def _same(item: Mapping[str, Any], installed: CondaPackage | None) -> bool:
    if installed is None:
        return False
    found = (item["version"], item["build"], item["subdir"])
    # Not the channel: mirrors serve the same build under another address.
    return found == (installed.version, installed.build, installed.subdir or item["subdir"])


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


def require_hashes(artifacts: Iterable[CondaArtifact]) -> None:
    """Raise InstallerError for a package without a hash, both in its channel and in its record."""
    bare = [item.filename for item in artifacts if not (item.sha256 or item.md5)]
    if bare:
        raise InstallerError(
            f"{bare[0]} cannot be verified",
            cause="neither its channel nor its record has a hash of it",
            hint="Ask whoever runs the channel to index it again, or choose another build",
        )
