"""Hashing of the files concerned, where a text tells of a crash or of a file that cannot be what it was."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

import msgspec

from envmedic.api.context.settings import Settings
from envmedic.model.events import Notice
from envmedic.model.facts import Environment, Facts
from envmedic.model.playbook import LoadedPlaybook, ReadText, TextMatch
from envmedic.model.registries.faults import Fault
from envmedic.probe.packages import contents, library_hashes

_ABOUT: Final[frozenset[Fault]] = frozenset({
    "native-crash", "no-kernel-image", "extension-undefined-symbol", "half-installed",
})  # fmt: skip
"""Faults whose texts wrong bytes of a library bring about as well."""
_FAMILY: Final = re.compile(r"torch(?:vision|audio)?|triton|nvidia-.+")
"""Distributions whose libraries a program of torch has loaded, where the text names none."""
_CONDA_FAMILY: Final = re.compile(
    r"(?:lib)?(?:py)?torch(?:vision|audio)?|triton|lib(?:cu|nv|npp)\w+|cuda-(?:cudart|cupti|nvrtc|nvtx)|cudatoolkit"
    r"|cudnn|nccl|mkl|llvm-openmp|libgcc|libstdcxx"
)
"""The same of conda packages."""
_FILE = re.compile(r"(?:site|dist)-packages[/\\](?P<top>[\w-]+)")
_PATH = re.compile(r"/[^\s'\"`:;,()<>\[\]]+")
_SITE = re.compile(r"^.*[/\\](?:site|dist)-packages[/\\]")
_WORD = re.compile(r"[A-Za-z_]\w*")


def with_contents(settings: Settings, playbooks: Sequence[LoadedPlaybook], facts: Facts, read: ReadText) -> Facts:
    """Return `facts` with the hashes of the files concerned compared, where the text asks for it.

    Libraries where a match tells of a crash or of wrong bytes; modules where the last error was raised by one.
    """
    environment = facts.environment
    about = {loaded.playbook.id for loaded in playbooks if loaded.playbook.fault in _ABOUT}
    telling = [match for match in read.matches if match.playbook in about and not match.passing]
    sources = read.failures.sources
    if environment is None or settings.deep or not (telling or read.failures.raised_in):
        return facts
    libraries = (path for match in telling for path in _PATH.findall(match.line) if ".so" in path)
    files = frozenset(_places(environment, (*sources, *libraries)))
    raised_in = frozenset(_places(environment, read.failures.raised_in))
    names = frozenset((*(_concerned(environment, telling) if telling else ()), *_replaced(environment, raised_in)))
    if not names and not files:
        return facts
    if names:
        of = f"of {len(names)} packages" if len(names) > 1 else f"of {min(names)}"
        message = f"comparing the libraries {of} with their recorded hashes"
        settings.stream.emit(Notice(code="library-hashes", message=message))
    return msgspec.structs.replace(facts, environment=library_hashes.compare(environment, names, files))


def _places(environment: Environment, paths: Iterable[str]) -> Iterator[str]:
    """Where the files of a text would be in the environment, which it may name by another path."""
    for path in paths:
        inside = _SITE.sub("", path).replace("\\", "/")
        for prefix in (environment.prefix, environment.real_prefix):
            if path.startswith(f"{prefix}/"):
                yield posixpath.normpath(path.removeprefix(f"{prefix}/"))
        if inside != path:
            yield from (posixpath.normpath(f"{item.site}/{inside}") for item in environment.distributions)
        else:
            yield f"lib/{posixpath.basename(path)}"


def _replaced(environment: Environment, files: Collection[str]) -> Iterator[str]:
    """Names of the distributions of these files whose libraries have other sizes than they list.

    Of what people edit libraries are no part: such a one came with another release.
    """
    changed = {
        item.metadata_path
        for item in environment.files or ()
        if any(contents.is_library(path) for path in item.changed)
    }
    for item in environment.distributions:
        tops = {path.removeprefix(f"{item.site}/").partition("/")[0] for path in files}
        if item.metadata_path in changed and tops.intersection(item.import_names):
            yield item.name


def _concerned(environment: Environment, matches: Sequence[TextMatch]) -> Iterator[str]:
    """Names of the distributions and conda packages whose files or modules the lines name, else of torch's family."""
    lines = [match.line for match in matches]
    named = {found["top"] for line in lines for found in _FILE.finditer(line)}
    named = named or {word for line in lines for word in _WORD.findall(line)}
    # metadata of conda's packages may lack tags
    compiled = [
        item
        for item in environment.distributions
        if any(not tag.endswith("-any") for tag in item.tags) or (item.owner == "conda" and not item.tags)
    ]
    own = {item.name for item in compiled if named.intersection(item.import_names)}
    packages = environment.conda.packages if environment.conda is not None else ()
    yield from own
    yield from (item.name for item in packages if own.intersection(item.distributions))
    # torch loads NVIDIA's libraries, so that their damage shows in its own lines
    if not own or "torch" in own:
        yield from (item.name for item in environment.distributions if _FAMILY.fullmatch(item.name))
        yield from (item.name for item in packages if _CONDA_FAMILY.fullmatch(item.name))
