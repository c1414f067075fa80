"""Search for imports that crash, each in its own process, if a text reports a crash."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import msgspec

from envmedic.api.context.settings import Settings
from envmedic.diagnosis.findings import diagnose as conclude
from envmedic.engine.stage.activated_runner import ActivatedRunner
from envmedic.engine.stage.runners import DirectRunner
from envmedic.engine.store.interruption import Interruption
from envmedic.engine.verify import crash_search, verification
from envmedic.model.checks import Outcome
from envmedic.model.events import Notice
from envmedic.model.facts import Distribution, Environment, Facts
from envmedic.model.playbook import LoadedPlaybook, ReadText, TextMatch
from envmedic.planner import import_targets

if TYPE_CHECKING:
    from envmedic.engine.verify.crash_search import Attempt

SEARCHED = "import-sequence"
"""A playbook with this check is about crashing imports; a match of its signatures starts the search."""
SUSPECTS = (
    "decord", "cv2", "pyarrow", "open3d", "tensorflow", "paddle", "faiss", "sklearn", "ctranslate2", "bitsandbytes",
    "pyrender", "bpy", "nvdiffrast", "torchvision", "torch",
)  # fmt: skip
"""Import names that are most frequent in crash reports, those that disturb others first (`import-order-crash.yaml`)."""
_WORD = re.compile(r"[A-Za-z_][\w.]*")


def with_crash(
    settings: Settings, playbooks: Sequence[LoadedPlaybook], facts: Facts, matches: Sequence[TextMatch]
) -> Facts:
    """Return `facts` with the crashing imports, if a crash is the best explanation of the text."""
    environment = facts.environment
    if environment is None or not environment.interpreter.starts or not _tells(playbooks, matches):
        return facts
    about = {loaded.playbook.id for loaded in playbooks if SEARCHED in loaded.playbook.checks}
    return search(settings, facts, [match for match in matches if match.playbook in about])


def search(settings: Settings, facts: Facts, matches: Sequence[TextMatch]) -> Facts:
    """Return `facts` with the crashing imports among the names in `matches` and the usual suspects."""
    environment = facts.environment
    if environment is not None and not environment.interpreter.named:
        message = f"imports that crash are looked for in a named environment: -p {shlex.quote(environment.prefix)}"
        settings.stream.emit(Notice(code="crash-search", message=message))
        return facts
    names = candidates(environment, matches) if environment is not None else ()
    if environment is None or not names:
        return facts
    message = (
        f"looking for imports that crash, in processes of their own: {', '.join(names[: crash_search.MOST_NAMES])}"
    )
    settings.stream.emit(Notice(code="crash-search", message=message))
    found = crash_search.find(names, _attempt(Path(environment.real_prefix)))
    return msgspec.structs.replace(facts, import_crash=found)


def _tells(playbooks: Sequence[LoadedPlaybook], matches: Sequence[TextMatch]) -> bool:
    """Whether the best finding of the text is one that a search can confirm."""
    # the search starts dozens of processes, so a crash that is a side remark in the text does not start it
    about = {loaded.playbook.id for loaded in playbooks if SEARCHED in loaded.playbook.checks}
    if about.isdisjoint(match.playbook for match in matches):
        return False
    best = conclude(ReadText(matches=tuple(matches)), None, playbooks, prefix=None, log="").findings[:1]
    return bool(best) and best[0].playbook in about


def _attempt(prefix: Path) -> Attempt:
    """Return a function that imports sequences of names in the live environment and returns their outcomes."""
    # the diagnosis writes nothing: without byte code, and without events, which would show dozens of failures
    runner = ActivatedRunner(DirectRunner(prefix), prefix, Interruption())

    def attempt(sequences: Sequence[tuple[str, ...]]) -> Sequence[Outcome]:
        return verification.run_checks(crash_search.checks_of(sequences), runner, "before", lambda _event: None)

    return attempt


def candidates(environment: Environment, matches: Iterable[TextMatch]) -> tuple[str, ...]:
    """Return the import names to try, from installed distributions with compiled parts.

    Names in the text come first, then suspects, then distributions with an OpenMP runtime, then the rest, largest
    first.
    """
    # the order matters: the search tries a limited number, and the likeliest crash is found after few processes
    compiled = sorted(filter(_compiled, environment.distributions), key=lambda item: -item.size_bytes)
    importable = {name for item in compiled for name in item.import_names}
    everything = {name for item in environment.distributions for name in item.import_names}
    named = [word for match in matches for word in _named(match, everything)]
    tops = [word.partition(".")[0] for word in named]
    deep = [word for word in named if word.partition(".")[0] not in importable]
    suspects = [name for name in SUSPECTS if name in importable]
    owners = {item.distribution for item in environment.openmp}
    runtimes = [item for item in compiled if item.name in owners]
    others = [main for item in (*runtimes, *compiled) for main in import_targets.main([item])]
    return tuple(dict.fromkeys([*(name for name in tops if name in importable), *deep[:2], *suspects, *others]))


def _compiled(distribution: Distribution) -> bool:
    """Whether a distribution may have compiled modules."""
    # NVIDIA's wheels are libraries that torch loads: importing them loads nothing
    if distribution.name.startswith("nvidia-"):
        return False
    # without tags (conda packages, legacy installs) it may have compiled modules too
    return not distribution.tags or any(not tag.endswith("-any") for tag in distribution.tags)


def _named(match: TextMatch, known: set[str]) -> Iterator[str]:
    """Yield importable names in a line of the text: files of a stack trace as modules, and words."""
    for path in re.findall(r"(?:site|dist)-packages[/\\]([\w/\\-]+)\.(?:py|[\w.-]*so)\b", match.line):
        parts = [part for part in PurePosixPath(path.replace("\\", "/")).parts if part != "__init__"]
        if parts and parts[0] in known:
            yield ".".join(parts)
    for word in _WORD.findall(match.line):
        top = word.partition(".")[0]
        if top in known:
            yield top
