"""Hashing of the libraries concerned, where a text tells of a crash or of a library that cannot be what it was."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from envmedic.api.context.settings import Settings
from envmedic.model.events import Notice
from envmedic.model.facts import Environment, Facts
from envmedic.model.playbook import LoadedPlaybook, TextMatch
from envmedic.model.registries.faults import Fault
from envmedic.probe.packages import library_hashes

_ABOUT: Final[frozenset[Fault]] = frozenset({
    "native-crash", "no-kernel-image", "extension-undefined-symbol", "half-installed",
})  # fmt: skip
"""Faults whose texts wrong bytes of a library bring about as well."""
_FAMILY: Final = re.compile(r"torch(?:vision|audio)?|triton|nvidia-.+")
"""Distributions whose libraries a program of torch has loaded, where the text names none."""
_FILE = re.compile(r"(?:site|dist)-packages[/\\](?P<top>[\w-]+)")
_WORD = re.compile(r"[A-Za-z_]\w*")


def with_contents(
    settings: Settings, playbooks: Sequence[LoadedPlaybook], facts: Facts, matches: Sequence[TextMatch]
) -> Facts:
    """Return `facts` with the hashes of the libraries concerned compared, where a match of the text asks for it."""
    environment = facts.environment
    about = {loaded.playbook.id for loaded in playbooks if loaded.playbook.fault in _ABOUT}
    telling = [match for match in matches if match.playbook in about and not match.passing]
    if environment is None or settings.deep or not telling:
        return facts
    wanted = frozenset(_concerned(environment, telling))
    if not wanted:
        return facts
    message = f"comparing the libraries of {len(wanted)} distributions with their recorded hashes"
    settings.stream.emit(Notice(code="library-hashes", message=message))
    return msgspec.structs.replace(facts, environment=library_hashes.compare(environment, wanted))


def _concerned(environment: Environment, matches: Sequence[TextMatch]) -> Iterator[str]:
    """Names of the distributions whose files or packages the lines name, else of torch's family."""
    lines = [match.line for match in matches]
    named = {found["top"] for line in lines for found in _FILE.finditer(line)}
    named = named or {word for line in lines for word in _WORD.findall(line)}
    compiled = [item for item in environment.distributions if any(not tag.endswith("-any") for tag in item.tags)]
    own = [item.name for item in compiled if named.intersection(item.import_names)]
    # torch loads NVIDIA's libraries, so that their damage shows in its own lines
    if own and "torch" not in own:
        yield from own
    else:
        yield from (item.name for item in environment.distributions if _FAMILY.fullmatch(item.name))
        yield from own
