"""A host or shell at fault, and an environment in which nothing is wrong."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from envmedic.tree import fingerprint
from tests.support.cuda_family import host_file
from tests.support.native_case import Done, NativeCase


@dataclass(frozen=True)
class HostCase:
    """What the user saw, the playbook that knows it, and what such a host is like."""

    case: NativeCase
    room: Path
    log: Path
    playbook: str
    host: dict[str, object] = field(default_factory=dict)
    fault: str = "gpu-host-fault"
    verdict: str = "host"
    code: int = 5
    """Exit code of `diagnose`."""

    def text_leads_to_advice(self, *, refused: int = 5) -> None:
        """The text makes the verdict, whatever the environment; nothing is planned or changed.

        `refused` is the exit code of `apply`.
        """
        case = self.case
        before = fingerprint.digest(case.prefix)
        self._is_told(case.envmedic("diagnose", str(self.log), "--log-only", "--json"))
        self._is_told(case.envmedic("diagnose", str(self.log), "-p", str(case.prefix), "--json"))
        done = case.apply("--log", str(self.log))
        assert done.code == refused, done.told()
        assert fingerprint.digest(case.prefix) == before

    def text_alone_tells(self) -> None:
        """The text makes the verdict where nothing else is known."""
        self._is_told(self.case.envmedic("diagnose", str(self.log), "--log-only", "--json"))

    def facts_confirm_it(self, *, alone: bool) -> None:
        """Facts of the host confirm the text; `alone` says whether they tell without any."""
        case = self.case
        target = ("-p", str(case.prefix), "--json", "--host", host_file(self.room, **self.host))
        finding = self._is_told(case.envmedic("diagnose", str(self.log), *target))
        assert finding["confirmed"] is True
        self._tells(case, target, alone=alone)

    def _tells(self, case: NativeCase, target: tuple[str, ...], *, alone: bool) -> None:
        done = case.envmedic("diagnose", *target)
        assert (done.document["verdict"] == self.verdict) is alone, done.told()

    def _is_told(self, done: Done) -> dict[str, object]:
        assert (done.code, done.document["verdict"]) == (self.code, self.verdict), done.told()
        finding: dict[str, object] = done.document["findings"][0]
        assert (finding["fault"], finding["playbook"]) == (self.fault, self.playbook)
        assert done.document["advice"], "what to do is said"
        return finding
